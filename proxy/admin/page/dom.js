// Elements are made here and nowhere else. Text from the wire becomes text nodes
// and attribute values, never markup; the page's policy would refuse the rest.

const SVG = "http://www.w3.org/2000/svg";

export const $ = (id) => document.getElementById(id);

// h makes an element: h("td", {class: "n"}, "12"). Properties that begin with
// "on" are listeners; null and false are left out.
export function h(tag, props = {}, ...children) {
  return build(document.createElement(tag), props, children);
}

// s makes an SVG element.
export function s(tag, props = {}, ...children) {
  return build(document.createElementNS(SVG, tag), props, children);
}

function build(node, props, children) {
  set(node, props);
  node.append(...children.filter((c) => c !== null && c !== undefined));
  return node;
}

export function set(node, props) {
  for (const [name, value] of Object.entries(props)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === null || value === false) node.removeAttribute(name);
    else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
  }
  return node;
}

// text changes a text only if it differs, so that selections survive.
export function text(node, value) {
  if (node.textContent !== value) node.textContent = value;
  return node;
}

// keyed brings the children of a parent in line with a list: an element for each
// key, which is made once, moved only if it must be, and filled every time.
export function keyed(parent, list, key, make, fill) {
  const there = new Map([...parent.children].map((n) => [n.dataset.key, n]));
  let before = null;
  for (const item of list) {
    const k = String(key(item));
    let node = there.get(k);
    if (!node) {
      node = make(item);
      node.dataset.key = k;
    }
    there.delete(k);
    const next = before ? before.nextSibling : parent.firstChild;
    if (next !== node) parent.insertBefore(node, next);
    fill(node, item);
    before = node;
  }
  for (const node of there.values()) node.remove();
}

// chosen is the value of a group of radio buttons.
export const chosen = (name) => document.querySelector(`input[name="${name}"]:checked`).value;

// options brings a select in line with names; the first option stays.
export function options(select, names) {
  if (document.activeElement === select && select.options.length === names.length + 1) return;
  const was = select.value;
  keyed(select, [null, ...names], (n) => n ?? "", (n) => h("option", { value: n ?? "" }, n ?? ""), () => {});
  select.value = names.includes(was) ? was : "";
}
