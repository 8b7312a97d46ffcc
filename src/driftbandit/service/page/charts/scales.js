// Ranges, scales and ticks of axes.

import { day, fixed, minute, second } from "../format.js";

/** The map that takes low to `from` and high to `to`. */
export function linear(low, high, from, to) {
  const slope = (to - from) / (high - low || 1);
  return (value) => from + slope * (value - low);
}

export function extent(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) [low, high] = [Math.min(low, value), Math.max(high, value)];
  return [low, high];
}

/** The range, or one around it if it is a single point. */
export function widened(low, high) {
  const isPoint = high - low <= 1e-12 * Math.max(Math.abs(low), 1);
  return isPoint ? [low - 0.5, high + 0.5] : [low, high];
}

/** The middle part of some numbers, between two quantiles. */
export function middle(values, share) {
  const sorted = Float64Array.from(values).sort();
  const skip = Math.floor(share * sorted.length);
  return [sorted[skip], sorted[sorted.length - 1 - skip]];
}

function niceStep(span, most, steps = null) {
  const least = span / most;
  const power = 10 ** Math.floor(Math.log10(least));
  const offered = steps ?? [1, 2, 5, 10].map((n) => n * power);
  return offered.find((step) => step >= least * (1 - 1e-9)) ?? least;
}

export function ticksOf(low, high, most, step = niceStep(high - low, most)) {
  const first = Math.ceil(low / step - 1e-9), last = Math.floor(high / step + 1e-9);
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return Array.from({ length: last - first + 1 }, (_, place) => {
    const value = (first + place) * step;
    return { value, text: fixed(value, digits) };
  });
}

export const roundTicks = (low, high, most) =>
  ticksOf(low, high, most, Math.max(1, niceStep(high - low, most)));

const TIME_STEPS = [
  ...[1, 2, 5, 10, 15, 30],
  ...[1, 2, 5, 10, 15, 30].map((minutes) => 60 * minutes),
  ...[1, 2, 3, 6, 12].map((hours) => 3600 * hours),
  ...[1, 2, 7, 14, 28, 91, 182, 365].map((days) => 86400 * days),
];

export function timeTicks(low, high, most) {
  const step = niceStep(high - low, most, TIME_STEPS);
  const zone = -60 * new Date(1000 * low).getTimezoneOffset(); // ticks stand at local full hours
  const text = step < 60 ? second : step < 86400 ? minute : day;
  return ticksOf(low + zone, high + zone, most, step)
    .map(({ value }) => ({ value: value - zone, text: text(value - zone) }));
}

/** Room for the texts of ticks at the left. */
export const leftOf = (ticks) => 14 + 7.5 * Math.max(...ticks.map(({ text }) => text.length), 1);
