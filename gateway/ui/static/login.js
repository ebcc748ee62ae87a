// A one-time link brings its code behind the "#". It is taken out of the address at once, and spent
// only when the person presses the button.

const link = document.getElementById("link");
const form = document.getElementById("form");

function takeCode() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (!code) return;
  history.replaceState(null, "", location.pathname);
  link.elements.code.value = code;
  link.hidden = false;
  form.hidden = true;
  link.querySelector("button").focus();
}

document.getElementById("other").addEventListener("click", () => {
  link.hidden = true;
  form.hidden = false;
  form.elements.token.focus();
});
addEventListener("hashchange", takeCode);
takeCode();
