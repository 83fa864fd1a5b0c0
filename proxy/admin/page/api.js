// What /v1 is asked. A refusal is an Error with its problems as the message;
// without the token its status is 401.

const KEY = "wirewait.token";

export const giveToken = (token) => sessionStorage.setItem(KEY, token);

export const get = (path, query = {}) => {
  const words = new URLSearchParams(Object.entries(query).filter(([, v]) => v !== ""));
  return ask("GET", words.size ? `${path}?${words}` : path);
};

export const patchLink = (name, change) => ask("PATCH", `/v1/links/${encodeURIComponent(name)}`, change);

async function ask(method, path, body) {
  const headers = {};
  const token = sessionStorage.getItem(KEY);
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body) headers["Content-Type"] = "application/json";
  const answer = await fetch(path, { method, headers, body: body && JSON.stringify(body), signal: AbortSignal.timeout(10_000) });
  if (answer.ok) return answer.json();
  let problems = [`${path}: ${answer.status}`];
  try {
    problems = (await answer.json()).problems;
  } catch {
    // not one of /v1's answers: something stands in between
  }
  throw Object.assign(new Error(problems.join("; ")), { status: answer.status });
}
