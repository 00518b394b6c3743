// Builds elements. Every text goes in as text, so that nothing in it is markup; links lead to places of this page alone.
function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "class") node.className = value;
    else if (name === "href" && !String(value).startsWith("#")) continue;
    else node.setAttribute(name, value === true ? "" : visible(value));
  }
  add(node, children);
  return node;
}

function add(node, children) {
  for (const child of children.flat(9)) {
    if (child === undefined || child === null || child === false) continue;
    node.append(child instanceof Node ? child : visible(child));
  }
  return node;
}

function shape(tag, attributes, title) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (title) {
    const text = document.createElementNS("http://www.w3.org/2000/svg", "title");
    text.textContent = visible(title);
    node.append(text);
  }
  return node;
}

function verdict(word) {
  return el("span", { class: `verdict v-${String(word).replace(/[^a-z]+/g, "-")}` }, word);
}

// A part that is built when it is opened.
function fold(summary, build, attributes = {}) {
  const { open, ...rest } = attributes;
  const body = el("div", { class: "body" });
  const node = el("details", rest, el("summary", {}, summary), body);
  let built = false;
  node.build = () => {
    if (built) return;
    built = true;
    add(body, [build(body)]);
  };
  node.addEventListener("toggle", () => node.open && node.build());
  if (open) {
    node.open = true;
    node.build();
  }
  return node;
}

// Tells what happened to people who do not see it. The message goes away with the place, or after a while.
const TOLD = 10000;
let telling = 0;

function tell(text) {
  clearTimeout(telling);
  document.getElementById("told").textContent = visible(text);
  if (text) telling = setTimeout(tell, TOLD, "");
}
