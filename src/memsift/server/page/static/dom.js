// Elements without markup: everything that is shown goes in as text, so nothing that was stored can become anything else.

export const $ = (id) => document.getElementById(id);

/** An element. `on` holds listeners; other attributes are set as they are, unless null or false. */
export function el(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

export function svg(name, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function filled(element, { on = {}, ...attributes }, children) {
  for (const [event, listener] of Object.entries(on)) element.addEventListener(event, listener);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** Put `children` in place of what an element holds. */
export function show(element, ...children) {
  element.replaceChildren(...children.filter((child) => child !== null));
}

/** Run a handler's promise; what goes wrong is told in `where`, never thrown away. */
export function told(where, task) {
  return async (event) => {
    event?.preventDefault();
    try {
      await task(event);
    } catch (error) {
      where.hidden = false;
      show(where, error.message);
    }
  };
}
