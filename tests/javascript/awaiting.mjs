// What tests wait for: conditions and events, never times.

const LIMIT = 15_000;

/** Resolves when a condition holds; fails with what it is about if it never does. */
export async function until(holds, about) {
  const ends = Date.now() + LIMIT;
  while (!holds()) {
    if (Date.now() > ends) throw new Error(`never: ${about}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** The next value of an event that fits. */
export function next(connection, event, fits = () => true) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no ${event} came`)), LIMIT);
    const stop = connection.on(event, (value) => {
      if (!fits(value)) return;
      clearTimeout(timer);
      stop();
      resolve(value);
    });
  });
}

/** The name and the number of the error that a promise is rejected with. */
export async function refusal(promise) {
  try {
    await promise;
  } catch (error) {
    return [error.name, error.number];
  }
  throw new Error("it was not refused");
}
