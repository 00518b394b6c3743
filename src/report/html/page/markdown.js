// Copies parts of the page as Markdown. Texts of agents become code, in which nothing is markup.
function fence(text) {
  const ticks = Math.max(2, ...(text.match(/`+/g) ?? []).map((it) => it.length)) + 1;
  const mark = "`".repeat(ticks);
  return `${mark}\n${text}\n${mark}`;
}

function code(text) {
  const line = oneLine(visible(text), 300);
  const ticks = "`".repeat(Math.max(0, ...(line.match(/`+/g) ?? []).map((it) => it.length)) + 1);
  const space = line.startsWith("`") || line.endsWith("`") ? " " : "";
  return `${ticks}${space}${line}${space}${ticks}`;
}

function linkOf(place) {
  return location.href.replace(/#.*$/, "") + "#/" + place;
}

async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    tell(`${what} copied as Markdown`);
  } catch {
    // Without the right to write to the clipboard, the text is shown to be copied by hand.
    const area = el("textarea", { rows: 12, readonly: true, "aria-label": `${what} as Markdown` });
    area.value = text;
    const box = el("dialog", { class: "copied" }, el("p", {}, `${what} as Markdown`), area, el("button", { type: "button", onclick: () => box.close() }, "close"));
    box.addEventListener("close", () => box.remove());
    document.body.append(box);
    box.showModal();
    area.select();
  }
}

function trialMarkdown(trial) {
  const result = trial.result;
  const lines = [`### ${trial.word}: ${code(trial.case)} · ${code(trial.column)} · trial ${trial.trial}`, "", `Run ${code(run.run)}, ${linkOf(trial.place)}`, ""];
  if (trial.quarantine) lines.push(`Not counted: the case is ${code(trial.quarantine)}`, "");
  lines.push(facts(trial).map(([name, value]) => `${name} ${value}`).join(", "), "");
  if (result?.error) lines.push(`Error: ${result.error.category}`, "", fence(result.error.message), "");
  for (const grade of result?.grades ?? []) {
    const evidence = (grade.evidence ?? []).map((seq) => `#${seq}`).join(" ");
    lines.push(`- ${gradeWord(grade)} ${code(grade.name)}${grade.gate ? " [gate]" : ""}${grade.reason ? `: ${code(grade.reason)}` : ""}${evidence ? ` (events ${evidence})` : ""}`);
  }
  return lines.join("\n") + "\n";
}

function eventMarkdown(trial, trace, event) {
  const { what, text } = summary(trace, event);
  const whole = visible(withoutAnsi(fullText(trace, event)));
  const cut = whole.length > 20000 ? `${whole.slice(0, 20000)}\n… (${whole.length - 20000} more characters)` : whole;
  return `**#${event.seq} ${event.type}** ${code(what || text)} ([event](${linkOf(`${trial.place}/event/${event.seq}`)}))\n\n${fence(cut)}\n`;
}
