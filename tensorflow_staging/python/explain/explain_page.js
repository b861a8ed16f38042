// SPDX-License-Identifier: Apache-2.0
// Shows the graph of a report: a tree of name scopes, opened as the reader goes, and a search.
"use strict";
(() => {
  const PAGE = 200; // How many items a list shows before the reader asks for more.
  const FIRST = 20; // How many of them a scope of the tree shows at first.
  const SMALL = 60; // A graph with at most so many nodes is shown open.
  const SIDES = [
    ["ahead", "ahead of the step"],
    ["step", "in the step"],
    ["once", "runs once"],
    ["shared", "used by both"],
    ["control", "starts and stops stages"],
  ];
  const SIDE_OF = {"-1": 1, "-2": 3, "-3": 4, "-4": 2};

  const data = JSON.parse(document.getElementById("data").textContent);
  const names = decode(data.shared, data.rest);
  const lower = names.map((name, i) => (name + "\n" + data.ops[data.op[i]]).toLowerCase());
  const tree = document.getElementById("tree");
  const results = document.getElementById("results");
  const found = document.getElementById("found");
  const query = document.getElementById("query");
  const filter = document.getElementById("side");

  // Each name begins with as many characters of the one before as `shared` says.
  function decode(shared, rest) {
    let name = "";
    return rest.map((suffix, i) => (name = name.slice(0, shared[i]) + suffix));
  }

  function sideOf(node) {
    const side = data.side[node];
    return side >= 0 ? 0 : SIDE_OF[side];
  }

  function element(tag, className, text) {
    const made = document.createElement(tag);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function counted(count, noun) {
    return count.toLocaleString("en") + " " + noun + (count === 1 ? "" : "s");
  }

  // A scope of the tree: its name, the scopes and nodes in it by name, and how many of its nodes are on each side.
  function newScope(name, path) {
    return {name, path, scopes: new Map(), nodes: [], counts: SIDES.map(() => 0)};
  }

  function buildTree() {
    const root = newScope("", "");
    names.forEach((name, node) => {
      const side = sideOf(node);
      const parts = name.split("/");
      let scope = root;
      scope.counts[side]++;
      for (let i = 0; i + 1 < parts.length; i++) {
        let next = scope.scopes.get(parts[i]);
        if (!next) {
          next = newScope(parts[i], scope.path + parts[i] + "/");
          scope.scopes.set(parts[i], next);
        }
        next.counts[side]++;
        scope = next;
      }
      scope.nodes.push(node);
    });
    return root;
  }

  // Appends `first` items of a list, then PAGE at a time. Returns a function that shows all up to item `index`.
  function appendInPages(list, items, make, first) {
    let shown = 0;
    const more = element("button", "more");
    more.type = "button";
    const row = element("li");
    row.append(more);
    function show(end) {
      const part = document.createDocumentFragment();
      for (; shown < Math.min(end, items.length); shown++) part.append(make(items[shown]));
      row.remove();
      list.append(part);
      if (shown < items.length) {
        more.textContent = "Show more (" + counted(items.length - shown, "item") + " left)";
        list.append(row);
      }
    }
    more.addEventListener("click", () => show(shown + PAGE));
    show(first);
    return (index) => {
      if (index >= shown) show(index + 1);
    };
  }

  function bar(counts) {
    const total = counts.reduce((sum, count) => sum + count, 0);
    const made = element("span", "bar");
    made.title = SIDES.map(([, label], i) => counts[i] ? counts[i].toLocaleString("en") + " " + label : "")
        .filter(Boolean).join(", ");
    counts.forEach((count, i) => {
      if (!count) return;
      const part = element("span", SIDES[i][0]);
      part.style.width = (100 * count / total) + "%";
      made.append(part);
    });
    return made;
  }

  function badge(node) {
    const side = data.side[node];
    const label = side >= 0 ? "stage " + data.stages[side] : SIDES[sideOf(node)][1];
    return element("span", "badge " + SIDES[sideOf(node)][0], label);
  }

  function describe(row, node) {
    row.append(" ", element("span", "op", data.ops[data.op[node]]), " ", badge(node));
    const why = data.why[node];
    if (why >= 0 && data.side[node] !== -4) row.append(" ", element("span", "why", data.whys[why]));
    return row;
  }

  function leaf(node) {
    const row = element("li", "leaf");
    row.id = "node-" + node;
    const name = names[node];
    row.append(element("code", "", name.slice(name.lastIndexOf("/") + 1)));
    return describe(row, node);
  }

  function scopeItem(scope) {
    const item = element("li");
    const details = element("details");
    const summary = element("summary");
    const total = scope.counts.reduce((sum, count) => sum + count, 0);
    summary.append(element("code", "", scope.name), bar(scope.counts), element("span", "count", counted(total, "node")));
    details.append(summary);
    item.append(details);
    scope.open = () => {
      fill(scope, details);
      details.open = true;
    };
    details.addEventListener("toggle", () => fill(scope, details));
    return item;
  }

  // Adds the list of what is in a scope, once.
  function fill(scope, parent) {
    if (scope.items) return;
    scope.items = [...scope.scopes.values(), ...scope.nodes];
    const list = element("ul");
    scope.showUpTo = appendInPages(
        list, scope.items, (item) => typeof item === "number" ? leaf(item) : scopeItem(item),
        names.length <= SMALL ? PAGE : FIRST);
    parent.append(list);
  }

  function reveal(node) {
    query.value = "";
    filter.value = "";
    search();
    const parts = names[node].split("/");
    let scope = root;
    for (let i = 0; i + 1 < parts.length; i++) {
      const next = scope.scopes.get(parts[i]);
      scope.showUpTo(scope.items.indexOf(next));
      next.open();
      scope = next;
    }
    scope.showUpTo(scope.items.indexOf(node));
    const row = document.getElementById("node-" + node);
    for (const old of document.querySelectorAll(".shown")) old.classList.remove("shown");
    row.classList.add("shown");
    row.scrollIntoView({block: "center"});
  }

  function matches(words, side) {
    const list = [];
    for (let i = 0; i < lower.length; i++) {
      if ((side < 0 || sideOf(i) === side) && words.every((word) => lower[i].includes(word))) list.push(i);
    }
    return list;
  }

  function search() {
    const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
    const side = filter.value === "" ? -1 : Number(filter.value);
    const searching = words.length > 0 || side >= 0;
    tree.hidden = searching;
    results.hidden = !searching;
    results.replaceChildren();
    found.textContent = counted(names.length, "node");
    if (!searching) return;
    const list = matches(words, side);
    found.textContent = list.length.toLocaleString("en") + " of " + counted(names.length, "node");
    appendInPages(results, list, (node) => {
      const row = element("li", "leaf");
      row.append(link(node));
      return describe(row, node);
    }, PAGE);
  }

  function link(node) {
    const made = element("a", "node", names[node]);
    made.href = "#graph";
    made.dataset.node = node;
    return made;
  }

  document.addEventListener("click", (event) => {
    const target = event.target.closest("a.node");
    if (!target) return;
    event.preventDefault();
    reveal(Number(target.dataset.node));
  });
  let timer = 0;
  query.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(search, 120);
  });
  filter.addEventListener("change", search);

  const root = buildTree();
  SIDES.forEach(([, label], side) => {
    if (!root.counts[side]) return;
    const option = element("option", "", label);
    option.value = side;
    filter.append(option);
  });
  fill(root, tree);
  if (names.length <= SMALL) {
    const openAll = (scope) => scope.scopes.forEach((inner) => {
      inner.open();
      openAll(inner);
    });
    openAll(root);
  }
  search();
})();
