// Making, finding and filling elements.
//
// Names of arms and experiments come from outside. They reach the page only through these
// functions: as text nodes and attribute values, never as markup.

export const find = (selector, root = document) => root.querySelector(selector);

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** An element of a drawing (SVG). */
export function drawing(tag, attributes = {}, text = null) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== null) made.textContent = text;
  return made;
}

/** Write only what changed, so that selections and screen readers are left alone. */
export function write(node, text, value) {
  if (node.textContent !== text) node.textContent = text;
  if (value !== undefined) node.dataset.value = JSON.stringify(value);
}

/** Show a view: the content of a template. */
export function mount(view) {
  const main = find("#main");
  main.replaceChildren(find(view).content.cloneNode(true));
  return main;
}

/** Give a table body as many rows as there are items, and fill each. */
export function fillRows(body, items, make, fill) {
  while (body.rows.length > items.length) body.rows[body.rows.length - 1].remove();
  while (body.rows.length < items.length) body.append(make());
  items.forEach((item, place) => fill(body.rows[place], item));
}

/** Buttons of which one is pressed; they are made anew only if the choices change. */
export function showChoices(box, choices, chosen, choose) {
  const key = JSON.stringify(choices);
  if (box.dataset.choices !== key) {
    box.replaceChildren(...choices.map(([value, text]) => {
      const attributes = { type: "button", class: "choice", "data-choice": value };
      const button = element("button", attributes, text);
      button.addEventListener("click", () => choose(value));
      return button;
    }));
  }
  box.dataset.choices = key;
  for (const button of box.children) {
    button.setAttribute("aria-pressed", button.dataset.choice === String(chosen));
  }
}
