// The two questions that the page asks: for the token, and whether it is meant.

import { get, setToken } from "./api.js";
import { $, told } from "./dom.js";

/** Ask for the token until the server takes it; whether it did. */
export function unlock(words = "") {
  const dialog = $("unlock");
  $("unlock-error").textContent = words;
  $("token").value = "";
  return new Promise((done) => {
    const form = $("unlock-form");
    let taken = false;
    form.onsubmit = told($("unlock-error"), async () => {
      setToken($("token").value.trim());
      const state = await get("state").catch((error) => {
        setToken(null);
        throw error;
      });
      if (!state.may_write) {
        setToken(null);
        throw new Error("The server does not take this token.");
      }
      taken = true;
      dialog.close();
    });
    $("unlock-cancel").onclick = () => dialog.close();
    dialog.onclose = () => {
      $("token").value = "";
      done(taken);
    };
    dialog.showModal();
  });
}

/** Ask whether a deed is meant, and do it; `force` asks for one more tick. */
export function confirm({ title, words, yes, force, deed }) {
  const dialog = $("confirm");
  $("confirm-title").textContent = title;
  $("confirm-words").textContent = words;
  $("confirm-error").textContent = "";
  $("force-label").hidden = !force;
  $("force").checked = false;
  const button = $("confirm-yes");
  button.textContent = yes;
  button.disabled = force;
  $("force").onchange = () => (button.disabled = force && !$("force").checked);
  return new Promise((done) => {
    $("confirm-form").onsubmit = told($("confirm-error"), async () => {
      button.disabled = true;
      try {
        await deed($("force").checked);
        dialog.close();
      } finally {
        button.disabled = false;
      }
    });
    $("confirm-cancel").onclick = () => dialog.close();
    dialog.onclose = done;
    dialog.showModal();
    $("confirm-cancel").focus();
  });
}
