// Renders the colours of a terminal's text as classes; every other escape sequence is left out.
const ESCAPE = /\u001b(?:\[([0-?]*)[ -/]*([@-~])|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[PX^_][^\u001b]*(?:\u001b\\)?|[ -/]*[0-~])/g;
const COLOURS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

function hasAnsi(text) {
  return text.includes("\u001b");
}

function ansi(text) {
  const out = document.createDocumentFragment();
  let style = { colour: "", bold: false, dim: false, italic: false, underline: false };
  let at = 0;
  const put = (piece) => {
    if (!piece) return;
    const classes = [style.colour && `c-${style.colour}`, style.bold && "c-bold", style.dim && "c-dim", style.italic && "c-italic", style.underline && "c-underline"].filter(Boolean);
    out.append(classes.length ? el("span", { class: classes.join(" ") }, piece) : visible(piece));
  };
  for (const found of text.matchAll(ESCAPE)) {
    put(text.slice(at, found.index));
    at = found.index + found[0].length;
    if (found[2] === "m") style = styled(style, found[1]);
  }
  put(text.slice(at));
  return out;
}

// The text without its escape sequences.
function withoutAnsi(text) {
  return hasAnsi(text) ? text.replace(ESCAPE, "") : text;
}

function styled(before, codes) {
  let style = { ...before };
  const list = codes.split(/[;:]/).map(Number);
  for (let n = 0; n < list.length; n += 1) {
    const code = list[n];
    if (code === 0) style = { colour: "", bold: false, dim: false, italic: false, underline: false };
    else if (code === 1) style.bold = true;
    else if (code === 2) style.dim = true;
    else if (code === 3) style.italic = true;
    else if (code === 4) style.underline = true;
    else if (code === 22) style.bold = style.dim = false;
    else if (code === 23) style.italic = false;
    else if (code === 24) style.underline = false;
    else if (code >= 30 && code <= 37) style.colour = COLOURS[code - 30];
    else if (code >= 90 && code <= 97) style.colour = COLOURS[code - 90];
    else if (code === 39) style.colour = "";
    else if (code === 38 || code === 48) {
      // The nearest colour of the page's own eight stays readable in both schemes.
      const rgb = list[n + 1] === 5 ? ofPalette(list[n + 2]) : list.slice(n + 2, n + 5);
      if (code === 38) style.colour = nearest(rgb);
      n += list[n + 1] === 5 ? 2 : 4;
    }
  }
  return style;
}

function ofPalette(n = 0) {
  if (n < 16) return [(n & 1) * 255, ((n >> 1) & 1) * 255, ((n >> 2) & 1) * 255];
  if (n > 231) return [n * 10 - 2312, n * 10 - 2312, n * 10 - 2312];
  const six = n - 16;
  return [Math.floor(six / 36) * 51, (Math.floor(six / 6) % 6) * 51, (six % 6) * 51];
}

function nearest([red = 0, green = 0, blue = 0]) {
  const bit = (part) => (part > 110 ? 1 : 0);
  return COLOURS[bit(red) + 2 * bit(green) + 4 * bit(blue)];
}
