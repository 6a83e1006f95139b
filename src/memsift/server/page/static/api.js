// Calls to the own server, and to no other. The token goes out as a header only.

const KEPT = "memsift-token";

export class Refused extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/** A token in the fragment never reaches a server; it is taken from there, and the address is cleaned. Whether it was. */
export function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!given) return false;
  setToken(given);
  history.replaceState(null, "", location.pathname + location.search);
  return true;
}

export const token = () => sessionStorage.getItem(KEPT);

export function setToken(value) {
  if (value) sessionStorage.setItem(KEPT, value);
  else sessionStorage.removeItem(KEPT);
}

export const get = (name, query = {}) => ask(`api/${name}?${new URLSearchParams(query)}`, { method: "GET" });

export const post = (name, fields) =>
  ask(`api/${name}`, { method: "POST", body: JSON.stringify(fields), headers: { "Content-Type": "application/json" } });

async function ask(url, options) {
  const headers = { ...options.headers };
  if (token()) headers.Authorization = `Bearer ${token()}`;
  let response;
  try {
    response = await fetch(url, { ...options, headers, cache: "no-store", credentials: "omit", redirect: "error" });
  } catch (error) {
    if (error instanceof TypeError && /header/i.test(error.message)) throw new Refused("A token has plain characters only.", 401);
    throw new Refused("The server does not answer. Is memsift still running?", 0);
  }
  const text = await response.text();
  const found = parsed(text);
  if (response.ok && found) return found;
  // What stands in front of the memory refuses in plain words, the memory itself in JSON.
  const why = response.ok ? "The server answered something else than JSON." : found?.error || text.trim().slice(0, 200);
  throw new Refused(why || `The server answered ${response.status}.`, response.status);
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
