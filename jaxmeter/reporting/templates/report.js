"use strict";
// What a page does beyond its HTML: the view that the fragment names, cases unpacked when opened, search, sort,
// download, and figures to read, to select in, to save and to copy.
// Texts enter the page as text, or as HTML that the page's own templates have escaped.
(() => {
  if (!("DecompressionStream" in window)) return;

  const ROWS = 25;
  // Pixels of a saved image for each on the page, and around a saved figure.
  const SHARPNESS = 2;
  const MARGIN = 12;
  const LINE = 16;
  const LOOKS = ["color", "fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "stroke-linecap",
    "paint-order", "opacity", "font-weight", "text-anchor"];
  // Marks nearer than so many pixels, up and down, lie in one row.
  const ONE_ROW = 6;
  // Height of the bar in one line, for which the style sheet leaves room.
  const BAR = 36;
  const STEPS = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1 };
  const COLUMNS = [
    ["case", "Case"],
    ["variant", "Variant"],
    ["time", "Time"],
    ["speedup", "Speedup"],
    ["first", "First result"],
    ["memory", "Memory"],
    ["memory_of", "Memory of"],
    ["doubt", "Doubt"],
    ["where", "Where"],
    ["status", "Status"],
    ["suite", "Suite"],
    ["run", "Run"],
  ];
  // Columns that the reader has not chosen otherwise; the first names the row and always stays.
  const USUAL = "case,variant,time,speedup,first,memory,where,status";
  const NUMBERS = { speedup: "speedup", time: "execution_s", first: "first_result_s", memory: "memory_bytes" };
  const BOUNDS = ["value", "low", "high"];
  const FACETS = [
    ["suite", "Suite"],
    ["where", "Where"],
    ["variant", "Variant"],
    ["status", "Status"],
  ];
  const byId = (id) => document.getElementById(id);
  const search = byId("search");

  // Packed data

  const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;,=>?@^_`{|}~";
  const VALUES = new Uint8Array(128);
  for (const [value, digit] of [...DIGITS].entries()) VALUES[digit.charCodeAt(0)] = value;

  // Base 85: five digits are four bytes.
  function decodeBase85(text) {
    const groups = Math.ceil(text.length / 5);
    const digits = text.padEnd(groups * 5, "~");
    const bytes = new DataView(new ArrayBuffer(groups * 4));
    for (let group = 0, at = 0; group < groups; group++) {
      let value = 0;
      for (const end = at + 5; at < end; at++) value = value * 85 + VALUES[digits.charCodeAt(at)];
      bytes.setUint32(group * 4, value);
    }
    return new Uint8Array(bytes.buffer, 0, Math.floor((text.length * 4) / 5));
  }

  async function unpack(id) {
    const bytes = decodeBase85(byId(id).textContent);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const data = JSON.parse(await new Response(stream).text());
    return data.words ? putTogether(data) : data;
  }

  // A letter of a text stands for a word; a number follows those that stand after the same characters.
  function putTogether({ ids, kinds, words, numbers }) {
    const left = new Map(Object.entries(numbers).map(([context, all]) => [context, all.split(" ").values()]));
    const findWord = (letter) => {
      const code = letter.codePointAt(0);
      return words[code - 0x100 - (code < 0xd800 ? 0 : 0x800)];
    };
    const putNumbers = (text) =>
      text.replaceAll("\x7f", (_, at) => left.get(text.slice(Math.max(0, at - 4), at)).next().value);
    const made = {};
    for (const [kind, texts] of Object.entries(kinds)) {
      made[kind] = texts.map((text) => putNumbers(Array.from(text, findWord).join(""))).values();
    }
    return new Map(Object.entries(ids).map(([id, own]) => [id, own.map((kind) => made[kind].next().value).join("")]));
  }

  const unpacked = new Map();
  function open(id) {
    if (!unpacked.has(id)) unpacked.set(id, unpack(id));
    return unpacked.get(id);
  }

  // The HTML of what an id opens; undefined where nothing has it.
  async function openPiece(id) {
    const { chunks } = await open("index");
    return (await open(`chunk-${chunks[id] ?? 0}`)).get(id);
  }

  let results;
  async function openResults() {
    results ??= new Results(await open("index"));
    return results;
  }

  class Results {
    constructor({ suites, cases, columns, chunks }) {
      Object.assign(this, { suites, cases, columns, chunks });
      this.count = columns.case.length;
      this.texts = Array.from({ length: this.count }, (_, row) =>
        ["suite", "case", "variant", "where"].map((name) => this.read(name, row)).join(" ").toLowerCase());
    }

    read(name, row) {
      const column = this.columns[name];
      if (name === "suite") return this.suites[column[row]].name;
      if (name === "case") return this.cases[column[row]].name;
      return Array.isArray(column) ? column[row] : column.words[column.rows[row]];
    }

    // Rows that have all words and facets of a state, in its order.
    find(state, without) {
      const words = state.q.toLowerCase().split(/\s+/).filter(Boolean);
      const rows = [];
      for (let row = 0; row < this.count; row++) {
        if (!words.every((word) => this.texts[row].includes(word))) continue;
        const fits = ([name]) => name === without || !state[name] || this.read(name, row) === state[name];
        if (FACETS.every(fits)) rows.push(row);
      }
      return state.sort ? this.order(rows, state) : this.rank(rows, words);
    }

    // Results of a suite that a word names come first.
    rank(rows, words) {
      if (!words.length) return rows;
      const named = (row) => words.includes(this.read("suite", row).toLowerCase());
      return [...rows.filter(named), ...rows.filter((row) => !named(row))];
    }

    order(rows, { sort, down }) {
      const key = sort in NUMBERS ? (row) => this.columns[`${sort}_value`][row] : (row) => this.read(sort, row);
      const keys = new Map(rows.map((row) => [row, key(row)]));
      const compare = (one, other) => {
        const [a, b] = [keys.get(one), keys.get(other)];
        if (a === null || b === null) return (a === null) - (b === null);
        const ascending = typeof a === "number" ? a - b : a < b ? -1 : a > b ? 1 : 0;
        return down ? -ascending : ascending;
      };
      return rows.sort(compare);
    }

    list(rows) {
      return rows.map((row) => {
        const record = {};
        for (const name of ["suite", "case", "variant", "where", "run", "status"]) record[name] = this.read(name, row);
        for (const [name, called] of Object.entries(NUMBERS)) {
          for (const bound of BOUNDS) {
            record[bound === "value" ? called : `${called}_${bound}`] = this.columns[`${name}_${bound}`][row];
          }
        }
        for (const name of ["memory_of", "doubt"]) record[name] = this.read(name, row);
        return record;
      });
    }
  }

  // Elements

  function make(tag, properties = {}, ...children) {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  }

  function link(fragment, ...content) {
    return make("a", { href: `#${encode(fragment)}` }, make("bdi", {}, ...content));
  }

  // As encodeURIComponent, but what a fragment may hold stays readable: / : , = [ ].
  function encode(fragment) {
    return encodeURIComponent(fragment).replace(/%(2F|3A|2C|3D|5B|5D)/g, decodeURIComponent);
  }

  function download(name, type, content) {
    const url = URL.createObjectURL(new Blob([content], { type }));
    make("a", { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  }

  function toCsv(records) {
    if (!records.length) return "";
    const write = (value) => {
      // An apostrophe before a text that a spreadsheet would run as a formula; see FORMULA of render/export.py.
      const isFormula = typeof value === "string" && /^[=+\-@\t\r]/.test(value);
      const text = value === null ? "" : isFormula ? `'${value}` : String(value);
      return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    const lines = [Object.keys(records[0]), ...records.map(Object.values)];
    return lines.map((line) => `${line.map(write).join(",")}\n`).join("");
  }

  function makeDownloads(name, getRows) {
    const get = () => results.list(getRows());
    return [
      make("button", { type: "button", onclick: () => download(`${name}.csv`, "text/csv", toCsv(get())) }, "CSV"),
      make("button", {
        type: "button",
        onclick: () => download(`${name}.json`, "application/json", `${JSON.stringify(get(), null, 1)}\n`),
      }, "JSON"),
    ];
  }

  function addCopyButtons(root) {
    for (const code of root.querySelectorAll("code.copied")) {
      const button = make("button", { type: "button" }, "Copy");
      button.setAttribute("aria-label", `Copy: ${code.textContent}`);
      button.onclick = async () => {
        try {
          await navigator.clipboard.writeText(code.textContent);
          button.textContent = "Copied";
        } catch {
          getSelection().selectAllChildren(code);
          button.textContent = "Selected";
        }
      };
      code.after(" ", button);
    }
  }

  // Figures: the mark under the mouse, or else the one that arrow keys have reached, is read out in a line.

  const line = make("output", { id: "read" });
  document.body.append(line);
  const reading = { hovered: null, walked: null, picked: "" };
  const findMark = (target) => target.closest?.("figure .m");
  const getWords = (mark) => mark.querySelector("title")?.textContent ?? "";

  function readOut(changes) {
    reading.walked?.classList.remove("walked");
    Object.assign(reading, changes);
    reading.walked?.classList.add("walked");
    const { hovered, walked, picked } = reading;
    const mark = hovered ?? walked;
    const selection = picked ? `${picked} is selected, Esc clears` : "";
    const words = [mark ? getWords(mark) : "", selection].filter(Boolean).join(" · ");
    // The same words again would be spoken again.
    if (line.textContent !== words) line.textContent = words;
  }

  // Selects a variant in all figures of a view; the selected one again, or none, clears.
  function pick(variant) {
    readOut({ picked: variant === reading.picked ? "" : variant });
    document.body.classList.toggle("pick", Boolean(reading.picked));
    showPicked(document);
  }

  function showPicked(root) {
    for (const mark of root.querySelectorAll(".m")) mark.classList.toggle("on", mark.dataset.v === reading.picked);
  }

  function forget() {
    readOut({ hovered: null, walked: null });
    pick("");
  }

  // To the next mark, or with the keys up and down to one of the next row.
  function walk(figure, key) {
    const marks = [...figure.querySelectorAll(".m")];
    const middle = (mark) => { const { top, bottom } = mark.getBoundingClientRect(); return (top + bottom) / 2; };
    const step = STEPS[key];
    const at = marks.indexOf(reading.walked);
    let next = at < 0 && step < 0 ? marks.length - 1 : at + step;
    if (at >= 0 && (key === "ArrowUp" || key === "ArrowDown")) {
      while (marks[next] && Math.abs(middle(marks[next]) - middle(marks[at])) < ONE_ROW) next += step;
      if (!marks[next]) next = at;
    }
    readOut({ hovered: null, walked: marks[Math.min(Math.max(next, 0), marks.length - 1)] ?? null });
  }

  // The overview has a variant in one figure: there a mark, or the label of its row, opens the case.
  function choose(mark) {
    const { c, v } = mark?.dataset ?? {};
    if (!mark?.closest("#overview")) { if (v) pick(v); }
    else if (c) location.hash = encode(c);
  }

  function addReading() {
    document.addEventListener("mouseover", ({ target }) => readOut({ hovered: findMark(target) ?? null }));
    document.addEventListener("focusout", () => readOut({ walked: null }));
    document.addEventListener("click", ({ target }) => choose(target.closest?.("figure [data-c]") ?? findMark(target)));
    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const figure = event.target.matches?.("figure svg") ? event.target : null;
      if (event.key === "Escape") forget();
      else if (figure && event.key in STEPS) walk(figure, event.key);
      else if (figure && event.key === "Enter" && reading.walked) choose(reading.walked);
      else return;
      if (figure) event.preventDefault();
    });
  }

  // The quantity that figures show where they have several; the first is the time.
  let quantity = "time";

  function addSwitches(root) {
    for (const card of root.querySelectorAll(".card:has(figure[data-quantity])")) {
      const names = ["time", ...[...card.querySelectorAll("figure[data-quantity]")].map((one) => one.dataset.quantity)];
      const choose = (name) => { quantity = name; showQuantity(document); };
      const buttons = names.map((name) =>
        make("button", { type: "button", value: name, onclick: () => choose(name) }, name));
      card.querySelector("h2, h3").after(make("p", { className: "switch" }, ...buttons));
    }
    showQuantity(root);
  }

  function showQuantity(root) {
    for (const card of root.querySelectorAll(".card:has(.switch)")) {
      const buttons = [...card.querySelectorAll(".switch button")];
      const shown = buttons.some((one) => one.value === quantity) ? quantity : "time";
      for (const one of buttons) one.setAttribute("aria-pressed", one.value === shown);
      for (const one of card.querySelectorAll("figure")) one.hidden = (one.dataset.quantity ?? "time") !== shown;
    }
  }

  function addMenus(root) {
    for (const card of root.querySelectorAll(".card:has(figure svg)")) {
      const heading = card.querySelector("h2, h3").textContent;
      const menu = make("p", { className: "menu" });
      const add = (text, label, act) => {
        const button = make("button", { type: "button", ariaLabel: `${text}${label}: ${heading}` }, text);
        button.onclick = async () => { button.textContent = await act(card) ?? text; };
        button.onblur = () => { button.textContent = text; };
        menu.append(button, " ");
      };
      add("SVG", " image", saveSvg);
      add("PNG", " image", savePng);
      add("Copy Markdown", "", copyMarkdown);
      card.append(menu);
    }
  }

  // A wide and a narrow drawing stand in a card; the style sheet shows one.
  function findShown(card) {
    return [...card.querySelectorAll("figure svg")].find((one) => one.getClientRects().length);
  }

  const nameFile = (card) => {
    const names = [card.closest("#case") ? decode(location.hash.slice("#case=".length)) : "", card.dataset.card];
    return names.filter(Boolean).join("-").replace(/[^\w.,=]+/g, "-");
  };

  // What a figure is about, and what it was measured on, for who sees it without the page.
  function listLines(card) {
    const read = (root, selector) => root?.querySelector(selector)?.textContent.trim() ?? "";
    const subject = read(card.closest("#case"), "h1") || read(card.closest("details.suite"), "summary strong");
    const title = [subject, read(card, "h2, h3")].filter(Boolean).join(": ");
    const devices = [...document.querySelectorAll(".devices > span")].map((one) => one.textContent.trim());
    return { title, notes: [read(document, "#overview h1"), ...devices] };
  }

  function makeSvg(tag, attributes, text = "") {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.textContent = text;
    return element;
  }

  // The figure as a file of its own: below its title, above what it was measured on, in its colours on the page.
  function writeSvg(card) {
    const figure = findShown(card);
    const copy = figure.cloneNode(true);
    const copies = [copy, ...copy.querySelectorAll("*")];
    for (const [index, one] of [figure, ...figure.querySelectorAll("*")].entries()) {
      if (one.localName === "title") continue;
      const style = getComputedStyle(one);
      for (const name of LOOKS) copies[index].setAttribute(name, style.getPropertyValue(name));
    }
    const { title, notes } = listLines(card);
    const { color, fontFamily } = getComputedStyle(figure);
    const pen = new OffscreenCanvas(1, 1).getContext("2d");
    const measure = (font, text) => { pen.font = `${font} ${fontFamily}`; return pen.measureText(text).width; };
    const widest = Math.max(measure("600 13px", title), ...notes.map((note) => measure("11px", note)));
    const [width, height] = ["width", "height"].map((name) => Number(figure.getAttribute(name)));
    const size = {
      width: Math.ceil(Math.max(width, widest)) + 2 * MARGIN,
      height: height + (notes.length + 1) * LINE + 3 * MARGIN,
    };
    const whole = makeSvg("svg", { ...size, "font-family": fontFamily, "font-size": 11 });
    const top = MARGIN + LINE;
    for (const [name, value] of Object.entries({ x: MARGIN, y: top })) copy.setAttribute(name, value);
    whole.append(
      makeSvg("rect", { ...size, fill: getComputedStyle(card).backgroundColor }),
      makeSvg("text", { x: MARGIN, y: MARGIN + 11, fill: color, "font-size": 13, "font-weight": 600 }, title),
      copy,
      ...notes.map((note, index) =>
        makeSvg("text", { x: MARGIN, y: top + height + MARGIN + (index + 1) * LINE - 4, fill: color }, note)),
    );
    return new XMLSerializer().serializeToString(whole);
  }

  function saveSvg(card) {
    download(`${nameFile(card)}.svg`, "image/svg+xml", writeSvg(card));
  }

  async function savePng(card) {
    const image = make("img", { src: `data:image/svg+xml,${encodeURIComponent(writeSvg(card))}` });
    await image.decode();
    const canvas = new OffscreenCanvas(SHARPNESS * image.width, SHARPNESS * image.height);
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    download(`${nameFile(card)}.png`, "image/png", await canvas.convertToBlob());
  }

  async function copyMarkdown(card) {
    try {
      await navigator.clipboard.writeText(writeMarkdown(card));
      return "Copied";
    } catch {
      download(`${nameFile(card)}.md`, "text/markdown", writeMarkdown(card));
      return "Saved";
    }
  }

  // The question, its answer, the value of each mark, and what it was measured on.
  function writeMarkdown(card) {
    const clean = (text) => text.trim().replace(/[ \n]+/g, " ").replace(/[\\`*_<]/g, "\\$&");
    const { href } = card.querySelector("h2 a, h3 a") ?? location;
    // Where a file lies concerns nobody else.
    const target = href.startsWith("file:") ? href.slice(href.split("#")[0].lastIndexOf("/") + 1) : href;
    const said = [...card.querySelectorAll(".said")].map((one) => clean(one.textContent));
    const values = [...findShown(card).querySelectorAll(".m")].map((mark) => `- ${clean(getWords(mark))}`);
    const question = `**[${clean(card.querySelector("h2, h3").textContent)}](<${target}>)**`;
    const context = clean(listLines(card).notes.join(" · "));
    return `${[question, ...said, values.join("\n"), context].join("\n\n")}\n`;
  }

  // What HTML that was just unpacked needs.
  function equip(root) {
    addCopyButtons(root);
    addMenus(root);
    addSwitches(root);
    showPicked(root);
  }

  // All results

  const EMPTY = { q: "", suite: "", where: "", variant: "", status: "", sort: "", down: "", rows: "", cols: "" };
  let state = { ...EMPTY };

  function readState(query) {
    const given = new URLSearchParams(query);
    const read = Object.fromEntries(Object.keys(EMPTY).map((name) => [name, given.get(name) ?? ""]));
    if (!COLUMNS.some(([name]) => name === read.sort)) read.sort = "";
    return read;
  }

  function writeState() {
    const query = new URLSearchParams(Object.entries(state).filter(([, value]) => value));
    return query.size ? `#all?${String(query).replaceAll("%2C", ",")}` : "#all";
  }

  function listColumns() {
    const names = (state.cols || USUAL).split(",");
    return COLUMNS.filter(([name], index) => !index || names.includes(name));
  }

  function chooseColumns() {
    const chosen = COLUMNS.map(([name]) => name).filter((name) => explorer.columns[name].checked).join(",");
    change({ rows: state.rows, cols: chosen === USUAL ? "" : chosen });
  }

  async function change(changes) {
    const stays = location.hash.startsWith("#all");
    const mine = begin();
    state = { ...(stays ? state : EMPTY), rows: "", ...changes };
    history[stays ? "replaceState" : "pushState"](null, "", writeState());
    await openResults();
    if (!isCurrent(mine)) return;
    show("All results", ["all"]);
    fillExplorer();
  }

  const explorer = {};
  function buildExplorer() {
    const facets = make("p", { className: "facets" });
    for (const [name, title] of FACETS) {
      const select = make("select", { onchange: () => change({ [name]: select.value }) });
      explorer[name] = select;
      facets.append(make("label", {}, `${title} `, select), " ");
    }
    facets.append(make("button", { type: "button", onclick: clear }, "Clear"));
    explorer.count = make("p", { className: "note" });
    explorer.count.setAttribute("role", "status");
    explorer.head = make("tr");
    explorer.body = make("tbody");
    explorer.columns = Object.fromEntries(COLUMNS.map(([name], index) =>
      [name, make("input", { type: "checkbox", disabled: !index, onchange: chooseColumns })]));
    const choices = COLUMNS.flatMap(([name, title]) => [make("label", {}, explorer.columns[name], ` ${title}`), " "]);
    const columns = make("details", { className: "facets" }, make("summary", {}, "Columns"), ...choices);
    const caption = make("caption", {}, make("span", {}, "A row for each variant of each case at each place."));
    const table = make("table", { className: "explored" }, caption, make("thead", {}, explorer.head), explorer.body);
    const region = make("div", { className: "scroll long", tabIndex: 0 }, table);
    region.setAttribute("role", "group");
    region.setAttribute("aria-label", "All results");
    explorer.more = make("button", { type: "button", onclick: () => change({ rows: String(shownRows() + ROWS) }) });
    const downloads = makeDownloads("results", () => results.find(state));
    const shown = make("p", { className: "actions" }, "Matches as ", downloads[0], " ", downloads[1]);
    byId("all").append(make("h1", {}, "All results"), facets, columns, shown, explorer.count, region, explorer.more);
  }

  function clear() {
    search.value = "";
    change({ ...EMPTY, cols: state.cols });
  }

  function shownRows() {
    return Math.max(ROWS, Math.min(Number(state.rows) || 0, results.count));
  }

  function fillExplorer() {
    if (!explorer.body) buildExplorer();
    if (document.activeElement !== search) search.value = state.q;
    const asked = ["q", ...FACETS.map(([name]) => name)].map((name) => state[name]).join("\n");
    // The matches first: the facets' hundreds of options take longer than they do.
    clearTimeout(explorer.waiting);
    if (explorer.asked === undefined) fillFacets();
    else if (asked !== explorer.asked) explorer.waiting = setTimeout(fillFacets, 100);
    explorer.asked = asked;
    fillHead();
    const rows = results.find(state);
    const shown = rows.slice(0, shownRows());
    explorer.body.replaceChildren(...shown.map(makeRow));
    const hidden = results.count - rows.length;
    const rest = hidden ? `; ${hidden} of ${results.count} hidden by search and filters` : "";
    explorer.count.textContent = rows.length
      ? `${shown.length} of ${rows.length} matches shown${rest}.`
      : `No result matches${rest}: change the search, or clear it.`;
    explorer.more.hidden = shown.length === rows.length;
    explorer.more.textContent = `${Math.min(ROWS, rows.length - shown.length)} more`;
  }

  function fillFacets() {
    for (const [name, title] of FACETS) {
      const counts = new Map();
      const rows = results.find({ ...state, sort: "" }, name);
      for (const row of rows) counts.set(results.read(name, row), (counts.get(results.read(name, row)) ?? 0) + 1);
      if (state[name] && !counts.has(state[name])) counts.set(state[name], 0);
      const options = [...counts].sort(([a], [b]) => (a < b ? -1 : 1));
      explorer[name].replaceChildren(
        make("option", { value: "" }, `any (${rows.length})`),
        ...options.map(([value, count]) => make("option", { value }, `${value} (${count})`)));
      explorer[name].value = state[name];
      explorer[name].setAttribute("aria-label", title);
    }
  }

  function fillHead() {
    const columns = listColumns();
    for (const [name] of COLUMNS) explorer.columns[name].checked = columns.some(([one]) => one === name);
    explorer.head.replaceChildren(...columns.map(([name, title]) => {
      const sorted = state.sort === name;
      const sign = sorted ? (state.down ? " ▼" : " ▲") : "";
      const press = async () => {
        await change({ sort: name, down: sorted && !state.down ? "1" : "" });
        explorer.head.querySelectorAll("button")[columns.findIndex(([one]) => one === name)].focus();
      };
      const button = make("button", { type: "button", onclick: press }, `${title}${sign}`);
      const cell = make("th", { scope: "col", className: name in NUMBERS ? "number" : "" }, button);
      if (sorted) cell.setAttribute("aria-sort", state.down ? "descending" : "ascending");
      return cell;
    }));
  }

  // Long texts break between a number and its interval, and between two params.
  const keepBounds = (text) => text.replace(/\[[^\]]*\]/g, (bounds) => bounds.replaceAll(" ", "\u00a0"));
  const breakAtCommas = (text) => text.split(/(?<=,)/).flatMap((part, index) => (index ? [make("wbr"), part] : [part]));

  function makeRow(row) {
    const cells = listColumns().map(([name], index) => {
      const tag = index ? "td" : "th";
      const text = results.read(name, row);
      const content = name === "case"
        ? link(results.cases[results.columns.case[row]].id, ...breakAtCommas(text))
        : make("bdi", {}, keepBounds(text));
      return make(tag, { className: name in NUMBERS ? "number" : "" }, content);
    });
    cells[0].scope = "row";
    return make("tr", {}, ...cells);
  }

  // Views

  const suiteHeading = make("h1", { hidden: true });
  const suiteQuestion = make("p", { className: "subtitle" });
  byId("suites").prepend(suiteHeading, suiteQuestion);

  // Unpacking takes a while: what was begun for a view that has been left changes nothing.
  let navigation = 0;
  const begin = () => ++navigation;
  const isCurrent = (mine) => mine === navigation;

  const title = document.title;

  function show(name, views, suite) {
    forget();
    document.title = name ? `${name} – jaxmeter` : title;
    const fragment = location.hash.split("?")[0];
    for (const one of document.querySelectorAll("nav a")) {
      if (one.hash === (fragment || "#overview")) one.setAttribute("aria-current", "page");
      else one.removeAttribute("aria-current");
    }
    suiteHeading.hidden = !suite;
    suiteHeading.textContent = suite ? suite.querySelector("summary strong").textContent : "";
    suiteQuestion.textContent = suite ? suite.querySelector("summary .question").textContent : "";
    byId("suites-heading").textContent = suite ? "Its figures and results" : "Suites";
    for (const view of document.querySelectorAll(".view")) view.hidden = !views.includes(view.id);
    for (const one of document.querySelectorAll("details.suite")) {
      one.hidden = Boolean(suite) && one !== suite;
      // Alone it is no fold: its name stands above.
      one.classList.toggle("alone", one === suite);
    }
    byId("lost").textContent = "";
  }

  const OVERVIEW = ["overview", "suites", "rest"];

  // The number of a case, which may be named without its params where no other case is.
  function findCase(cases, id) {
    const alike = cases.filter((one) => one.id === id || one.id.startsWith(`${id}[`));
    return cases.indexOf(alike.find((one) => one.id === id) ?? (alike.length === 1 ? alike[0] : null));
  }

  // The view of a case; null where there is none.
  async function buildCase(id) {
    const { cases } = await openResults();
    const number = findCase(cases, id);
    if (number < 0) return null;
    const view = make("div");
    // The page's own templates made this, and escaped what was recorded; the policy runs nothing in it.
    view.innerHTML = await openPiece(cases[number].id);
    equip(view);
    const rows = Array.from({ length: results.count }, (_, row) => row).filter(
      (row) => results.columns.case[row] === number);
    const downloads = makeDownloads(cases[number].name, () => rows);
    view.querySelector(".actions").append("Its results as ", downloads[0], " ", downloads[1]);
    return view;
  }

  const filling = new Map();
  function fill(details) {
    if (!filling.has(details)) filling.set(details, unpackInto(details));
    return filling.get(details);
  }

  async function unpackInto(details) {
    const packed = details.querySelector(".packed");
    if (!packed) return;
    packed.innerHTML = await openPiece(packed.dataset.id ?? details.id);
    equip(packed);
    if (!details.matches(".suite")) return;
    const { suites } = await openResults();
    const { name } = suites.find((one) => one.id === details.id);
    const query = new URLSearchParams({ suite: name });
    packed.prepend(make("p", {}, make("a", { href: `#all?${query}` }, "All results of this suite: sort, filter, CSV")));
    for (const group of details.querySelectorAll(".results tbody[id]")) {
      const heading = group.querySelector("th");
      heading.replaceChildren(make("a", { href: `#${encode(group.id)}` }, heading.textContent));
    }
  }

  // The fold of the section that the last link named; the next link closes it.
  let unfolded = null;

  async function route(isFirst) {
    const mine = begin();
    if (unfolded) unfolded.open = false;
    unfolded = null;
    const fragment = location.hash.slice(1);
    if (fragment === "all" || fragment.startsWith("all?")) {
      state = readState(fragment.slice("all?".length));
      await openResults();
      if (!isCurrent(mine)) return;
      show("All results", ["all"]);
      fillExplorer();
      return;
    }
    if (document.activeElement !== search) search.value = "";
    const id = decode(fragment);
    if (id.startsWith("all?")) {
      location.replace(`#${id}`);
      return;
    }
    if (id.startsWith("case=")) {
      const view = await buildCase(id);
      if (!isCurrent(mine)) return;
      if (view === null) {
        show("", OVERVIEW);
        byId("lost").textContent = `No such case here: ${id.slice("case=".length)}. This is the overview.`;
        return;
      }
      byId("case").replaceChildren(...view.childNodes);
      show(byId("case").querySelector("h1").textContent, ["case"]);
      scrollTo(0, 0);
      if (!isFirst) byId("case").focus({ preventScroll: true });
      return;
    }
    const target = find(id);
    if (target?.matches("details.suite")) {
      target.open = true;
      show(target.querySelector("summary strong").textContent, ["suites"], target);
      scrollTo(0, 0);
      return;
    }
    show("", OVERVIEW);
    if (target === null) {
      if (id) byId("lost").textContent = `Nothing here is called ${id}. This is the overview.`;
      return;
    }
    const folds = [];
    for (let one = target; one; one = one.parentElement) if (one.matches("details")) folds.push(one);
    // What a link in the bar at the top names is unfolded, too.
    const folded = target.matches("section:not(.view)") ? target.querySelector(":scope > details") : null;
    if (folded) folds.push(folded);
    if (folded && !folded.open) unfolded = folded;
    for (const one of folds) one.open = true;
    // What is not unpacked yet would move the target, or leave the page too short to scroll so far. Below a short
    // section the style sheet leaves room.
    await Promise.all([drawNarrow(), ...folds.map(fill)]);
    if (!isCurrent(mine)) return;
    // On a narrow screen the bar has several lines.
    const { offsetHeight } = document.querySelector("nav");
    document.documentElement.style.scrollPaddingTop = `${Math.max(offsetHeight - BAR, 0)}px`;
    target.scrollIntoView();
  }

  // What an id names among what can be looked at.
  function find(id) {
    const target = id ? byId(id) : null;
    const isShell = ["all", "case", "rest"].includes(id);
    return target && !isShell && target.closest("main") ? target : null;
  }

  function decode(fragment) {
    try {
      return decodeURIComponent(fragment);
    } catch {
      return fragment;
    }
  }

  // Drawings for narrow screens are packed; without a script the wide ones scroll.
  async function drawNarrow() {
    if (!narrow.matches) return;
    for (const figure of document.querySelectorAll("figure.narrow:empty")) {
      figure.innerHTML = await openPiece(figure.dataset.id);
      showPicked(figure);
    }
  }

  async function openFirst() {
    if (!search.value.trim()) return;
    const asked = location.hash.startsWith("#all") ? { ...state, q: search.value } : { ...EMPTY, q: search.value };
    const found = (await openResults()).find(asked);
    if (found.length) location.hash = encode(results.cases[results.columns.case[found[0]]].id);
  }

  addMenus(document);
  addSwitches(document);
  addReading();
  for (const one of document.querySelectorAll(".scripted")) one.hidden = false;
  byId("without-script").hidden = true;
  for (const packed of document.querySelectorAll(".packed")) {
    const details = packed.closest("details");
    details.addEventListener("toggle", () => details.open && fill(details));
  }
  search.addEventListener("input", () => change({ q: search.value }));
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") openFirst();
  });
  addEventListener("keydown", (event) => {
    const typing = event.target.matches?.("input, select, textarea");
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      search.focus();
      search.select();
    }
  });
  const narrow = matchMedia("(max-width: 640px)");
  narrow.addEventListener("change", drawNarrow);
  drawNarrow();
  // Before the reader searches.
  (window.requestIdleCallback ?? setTimeout)(openResults);
  addEventListener("hashchange", () => route(false));
  route(true);
})();
