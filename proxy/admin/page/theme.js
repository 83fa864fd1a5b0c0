// Light, dark, or what the system says. The choice is kept in this browser.

import { text } from "./dom.js";

const KEY = "wirewait.theme";
const THEMES = ["system", "light", "dark"];

export function startTheme(button) {
  let theme = localStorage.getItem(KEY);
  const show = () => {
    document.documentElement.dataset.theme = theme;
    text(button, `Theme: ${theme}`);
  };
  if (!THEMES.includes(theme)) theme = "system";
  show();
  button.addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    localStorage.setItem(KEY, theme);
    show();
  });
}
