// The map: a canvas of points. Circles stay, rings with a cross would leave, diamonds are pinned.

const PAD = 22;

export function makeMap(canvas, { onLook, onChoose }) {
  let points = null;
  let places = [];
  let ranks = [];
  let order = [];
  let marked = new Set();
  let chosen = -1;
  let hovered = -1;
  let colours = null;

  const resolve = (name) => {
    canvas.style.color = `var(--${name})`;
    return getComputedStyle(canvas).color;
  };

  function paint() {
    const triple = (name) => resolve(name).match(/[\d.]+/g).slice(0, 3).map(Number);
    const stops = ["map-low", "map-mid", "map-high"].map(triple);
    const ramp = Array.from({ length: 101 }, (_, i) => {
      const at = (i / 100) * 2;
      const [a, b] = at < 1 ? [stops[0], stops[1]] : [stops[1], stops[2]];
      const t = at < 1 ? at : at - 1;
      return `rgb(${a.map((v, c) => Math.round(v + (b[c] - v) * t)).join(" ")})`;
    });
    const names = ["victim", "pin", "ink", "card", "edge", "focus", "sunk"];
    colours = { ramp, ...Object.fromEntries(names.map((name) => [name, resolve(name)])) };
    draw();
  }

  function measure() {
    const box = canvas.getBoundingClientRect();
    const scale = window.devicePixelRatio || 1;
    canvas.width = Math.max(1, Math.round(box.width * scale));
    canvas.height = Math.max(1, Math.round(box.height * scale));
    canvas.getContext("2d").setTransform(scale, 0, 0, scale, 0, 0);
    place(box.width, box.height);
    draw();
  }

  function place(width, height) {
    if (!points) return;
    const n = points.id.length;
    const base = n > 3000 ? 2 : n > 900 ? 2.7 : 3.4;
    const reach = (values) => [Math.min(...values), Math.max(...values)];
    const [left, right] = n ? reach(points.x) : [0, 1];
    const [low, high] = n ? reach(points.y) : [0, 1];
    const fit = (value, from, to, length) => PAD + ((value - from) / (to - from || 1)) * (length - 2 * PAD);
    places = points.id.map((_, i) => ({
      x: fit(points.x[i], left, right, width),
      y: height - fit(points.y[i], low, high, height),
      r: Math.min(base + 1.9 * Math.sqrt(points.uses[i]), base * 4.5),
    }));
    // Large ones lie below small ones, victims and pinned ones above all others.
    const layer = (i) => (points.pinned[i] ? 2 : points.victim[i] ? 1 : 0);
    order = points.id.map((_, i) => i).sort((a, b) => layer(a) - layer(b) || places[b].r - places[a].r);
  }

  function draw() {
    if (!points || !colours) return;
    const pen = canvas.getContext("2d");
    pen.clearRect(0, 0, canvas.width, canvas.height);
    for (const i of order) point(pen, i);
    for (const i of marked) ring(pen, places[i], 5, colours.ink, 1.5);
    if (hovered >= 0) ring(pen, places[hovered], 4, colours.ink, 1.5);
    if (chosen >= 0) ring(pen, places[chosen], 5, colours.focus, 3);
  }

  function point(pen, i) {
    const { x, y, r } = places[i];
    const shade = colours.ramp[ranks[i]];
    pen.beginPath();
    if (points.pinned[i]) {
      const d = r + 3.5;
      pen.moveTo(x, y - d);
      pen.lineTo(x + d, y);
      pen.lineTo(x, y + d);
      pen.lineTo(x - d, y);
      pen.closePath();
      pen.fillStyle = colours.pin;
      pen.fill();
      pen.strokeStyle = colours.card;
    } else if (points.victim[i]) {
      pen.arc(x, y, r + 0.8, 0, 7);
      pen.fillStyle = colours.card;
      pen.fill();
      pen.strokeStyle = colours.victim;
      pen.lineWidth = 1.4;
      pen.stroke();
      pen.beginPath();
      const d = r * 0.5;
      pen.moveTo(x - d, y - d);
      pen.lineTo(x + d, y + d);
      pen.moveTo(x + d, y - d);
      pen.lineTo(x - d, y + d);
    } else {
      pen.arc(x, y, r, 0, 7);
      pen.fillStyle = shade;
      pen.fill();
      pen.strokeStyle = colours.sunk;
    }
    pen.lineWidth = points.victim[i] ? 1.2 : 0.8;
    pen.stroke();
  }

  function ring(pen, { x, y, r }, more, colour, width) {
    pen.beginPath();
    pen.arc(x, y, r + more, 0, 7);
    pen.strokeStyle = colour;
    pen.lineWidth = width;
    pen.stroke();
  }

  function nearest(x, y, reach) {
    let best = -1;
    let least = reach * reach;
    places.forEach((p, i) => {
      const d = (p.x - x) ** 2 + (p.y - y) ** 2;
      if (d < least) [best, least] = [i, d];
    });
    return best;
  }

  /** The next point in a direction: near, and not far off the line. */
  function towards(dx, dy) {
    if (chosen < 0) return extreme(1);
    const from = places[chosen];
    let best = chosen;
    let least = Infinity;
    places.forEach((p, i) => {
      const along = (p.x - from.x) * dx + (p.y - from.y) * dy;
      const aside = Math.abs((p.x - from.x) * dy) + Math.abs((p.y - from.y) * dx);
      const cost = along + 2 * aside;
      if (i !== chosen && along > 0.5 && cost < least) [best, least] = [i, cost];
    });
    return best;
  }

  function extreme(sign) {
    if (!places.length) return -1;
    return ranks.reduce((best, rank, i) => (sign * rank > sign * ranks[best] ? i : best), 0);
  }

  function choose(i) {
    if (i < 0) return;
    chosen = i;
    draw();
    onChoose(points.id[i]);
  }

  const spot = (event) => {
    const box = canvas.getBoundingClientRect();
    return nearest(event.clientX - box.left, event.clientY - box.top, 22);
  };
  canvas.addEventListener("pointermove", (event) => {
    const i = spot(event);
    if (i === hovered) return;
    hovered = i;
    draw();
    onLook(i < 0 ? null : points.id[i]);
  });
  canvas.addEventListener("pointerleave", () => {
    hovered = -1;
    draw();
    onLook(null);
  });
  canvas.addEventListener("click", (event) => choose(spot(event)));
  canvas.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (event.altKey || event.ctrlKey || event.metaKey || !points) return;
    if (event.key in steps) choose(towards(...steps[event.key]));
    else if (event.key === "Home") choose(extreme(-1));
    else if (event.key === "End") choose(extreme(1));
    else return;
    event.preventDefault();
  });
  new ResizeObserver(measure).observe(canvas);

  return {
    paint,
    /** Show other points; the entry that was chosen stays so if it is still there. */
    show(found) {
      const kept = chosen < 0 ? null : points.id[chosen];
      points = found;
      hovered = -1;
      marked = new Set();
      chosen = kept === null ? -1 : points.id.indexOf(kept);
      const rising = points.id.map((_, i) => i);
      if (points.score) rising.sort((a, b) => points.score[a] - points.score[b]);
      ranks = new Array(rising.length).fill(100);
      if (points.score) rising.forEach((i, rank) => (ranks[i] = Math.round((100 * rank) / Math.max(1, rising.length - 1))));
      measure();
    },
    /** Ring these ids, as what a search found. */
    mark(ids) {
      marked = new Set(ids.map((id) => points.id.indexOf(id)).filter((i) => i >= 0));
      draw();
    },
    point(id) {
      chosen = points.id.indexOf(id);
      draw();
    },
  };
}
