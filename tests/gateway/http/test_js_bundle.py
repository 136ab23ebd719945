import pytest

from weft.gateway.http.js_bundle import bundled

MODULES = {
    "entry.js": (
        "// What it is.\n// And more.\n\n"
        'import { first, Second } from "./a.js";\n'
        'import { third } from "./deep-b.js";\n\n'
        "export { Second };\n\n"
        "const OWN = 1;\n\n"
        "export async function all() {\n  return [first(), third, OWN];\n}\n"
    ),
    "a.js": (
        'import { third } from "./deep-b.js";\n\n'
        "const OWN = 2;\n\n"
        "export function first() {\n  return third + OWN;\n}\n\n"
        "export class Second {}\n"
    ),
    "deep-b.js": "const OWN = 3;\nexport const third = OWN;\n",
    "other.js": "export const unused = 1;\n",
}


def test_modules_become_one_with_the_exports_of_the_entry() -> None:
    bundle = bundled(MODULES, "entry.js")
    assert bundle == (
        "// What it is.\n// And more.\n"
        "\nconst $deep_b = (() => {\nconst OWN = 3;\nconst third = OWN;\n"
        "\nreturn { third };\n})();\n"
        "\nconst $a = (() => {\nconst { third } = $deep_b;\n\nconst OWN = 2;\n\n"
        "function first() {\n  return third + OWN;\n}\n\nclass Second {}\n"
        "\nreturn { first, Second };\n})();\n"
        "\nconst { first, Second } = $a;\nconst { third } = $deep_b;\n\n"
        "export { Second };\n\nconst OWN = 1;\n\n"
        "export async function all() {\n  return [first(), third, OWN];\n}\n"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('import all from "./a.js";\n', "import all from"),
        ('import { a as b } from "./a.js";\n', "import { a as b }"),
        ('import * as a from "./a.js";\n', r"import \* as a"),
        ('import "./a.js";\n', 'import "./a.js"'),
        ("export default 1;\n", "export default"),
        ("export let a = 1;\n", "export let"),
        ('export * from "./a.js";\n', r"export \*"),
        ('import { a } from "./none.js";\n', "entry.js imports none.js"),
        ('import { a } from "./entry.js";\n', "entry.js imports itself by way of entry.js"),
    ],
)
@pytest.mark.parametrize("is_entry", [True, False])
def test_what_cannot_be_bundled_is_refused(text: str, said: str, is_entry: bool) -> None:
    modules = {**MODULES, "entry.js": text}
    if not is_entry:
        modules = {"entry.js": 'import { a } from "./m.js";\n', "m.js": text, "a.js": ""}
        said = said.replace("entry.js imports none", "m.js imports none")
        said = said.replace("by way of entry.js", "by way of m.js")
    with pytest.raises(ValueError, match=said):
        bundled(modules, "entry.js")


def test_only_an_entry_may_export_what_it_imported() -> None:
    modules = {"entry.js": 'import { a } from "./m.js";\n', "m.js": "export { a };\n"}
    with pytest.raises(ValueError, match=r"m.js: this form cannot be bundled: export \{ a \}"):
        bundled(modules, "entry.js")
