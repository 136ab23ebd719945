import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { Subscription, Subscriptions, matcher, overlap } from "../../src/weft/static/weft-subscriptions.js";

const VECTORS = JSON.parse(readFileSync(new URL("../../docs/vectors/subjects.json", import.meta.url)));
const pathOf = (subject) => `/${subject.replaceAll(".", "/")}`;
const subscribe = (path, options = {}) => new Subscription(path, () => {}, options, () => {});

test("patterns match what the vectors say", () => {
  assert.ok(VECTORS.matches.length > 0);
  for (const [pattern, subject, isMatch] of VECTORS.matches) {
    assert.equal(matcher(pathOf(pattern)).test(pathOf(subject)), isMatch, `${pattern} ${subject}`);
  }
});

test("patterns overlap as the vectors say, whichever is first", () => {
  assert.ok(VECTORS.overlaps.length > 0);
  for (const [one, other, isOverlap] of VECTORS.overlaps) {
    assert.equal(overlap(pathOf(one), pathOf(other)), isOverlap, `${one} ${other}`);
    assert.equal(overlap(pathOf(other), pathOf(one)), isOverlap, `${other} ${one}`);
  }
});

test("characters that mean something in expressions mean themselves in paths", () => {
  assert.ok(matcher("/a+b(c)/[x]$|").test("/a+b(c)/[x]$|"));
  assert.ok(!matcher("/a+b").test("/aab"));
});

test("subpaths are the path itself and all below it, not its siblings", () => {
  const rooms = subscribe("/rooms", { subpaths: true });
  assert.deepEqual(
    ["/rooms", "/rooms/a", "/rooms/a/b", "/rooms2", "/other"].map((path) => rooms.matches(path)),
    [true, true, true, false, false],
  );
});

test("an interest is shared and goes with the last who has it", () => {
  const all = new Subscriptions();
  const wide = subscribe("/a", { subpaths: true });
  const narrow = subscribe("/a");
  assert.deepEqual(all.add(wide).map((each) => each.count), [1, 1]);
  assert.deepEqual(all.add(narrow).map((each) => each.count), [2]);
  assert.deepEqual(all.remove(wide).map((each) => each.pattern), ["/a/>"]);
  assert.deepEqual(all.remove(wide), []);
  assert.deepEqual(all.remove(narrow).map((each) => each.pattern), ["/a"]);
  assert.ok(all.isEmpty);
});

test("a message is for all that match, a request for one of them in turn", () => {
  const all = new Subscriptions();
  const [one, other] = [subscribe("/a/*"), subscribe("/a/b")];
  [one, other].forEach((each) => all.add(each));
  assert.deepEqual(all.receivers("/a/b", false), [one, other]);
  const asked = [all.receivers("/a/b", true), all.receivers("/a/b", true)].flat();
  assert.deepEqual(new Set(asked), new Set([one, other]));
});

test("who only listens is not asked", () => {
  const all = new Subscriptions();
  all.add(subscribe("/a", { listenOnly: true }));
  assert.deepEqual(all.receivers("/a", true), []);
  assert.equal(all.receivers("/a", false).length, 1);
});

test("of one group one gets a message", () => {
  const all = new Subscriptions();
  [1, 2, 3].forEach(() => all.add(subscribe("/jobs", { group: "workers" })));
  assert.equal(all.receivers("/jobs", false).length, 1);
});

test("what overlaps must be of one group and agree on its options", () => {
  const all = new Subscriptions();
  all.add(subscribe("/jobs/*", { group: "workers" }));
  assert.throws(() => all.add(subscribe("/jobs/1")), { name: "BadOption" });
  assert.throws(() => all.add(subscribe("/jobs/*", { group: "workers", policy: "latest" })), { name: "BadOption" });
  assert.equal(all.interests.length, 1);
});
