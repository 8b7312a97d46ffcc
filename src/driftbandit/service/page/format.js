// Numbers, times and names as text.

export const isNumber = (value) => typeof value === "number" && Number.isFinite(value);
export const whole = new Intl.NumberFormat("en-US");
const formats = new Map();

export function fixed(value, digits) {
  if (!isNumber(value)) return "–";
  if (!formats.has(digits)) {
    const length = { minimumFractionDigits: digits, maximumFractionDigits: digits };
    formats.set(digits, new Intl.NumberFormat("en-US", { ...length, signDisplay: "negative" }));
  }
  return formats.get(digits).format(value).replace("-", "−");
}

/** Decimals that show three significant digits of numbers of this size. */
export function decimals(size) {
  const power = size > 0 && Number.isFinite(size) ? Math.floor(Math.log10(size)) : 0;
  return Math.min(Math.max(2 - power, 0), 8);
}

/** A mean and its band, rounded more than in tables that explain sums. */
export function beliefText({ mean, spread }, digits) {
  const fewer = Math.max(digits - 1, 0);
  return spread ? `${fixed(mean, fewer)} ± ${fixed(spread, fewer)}` : fixed(mean, fewer);
}

/** A share in percent, with a decimal near 0% and 100%, which it shows only if they are meant. */
export function percent(share) {
  const near = Math.min(share, 1 - share);
  return `${fixed(100 * share, near > 0 && near < 0.0995 ? 1 : 0)}%`;
}

export const count = (n, one) => `${whole.format(n)} ${n === 1 ? one : `${one}s`}`;

const formatTime = (options) => {
  const format = new Intl.DateTimeFormat("en-US", { hourCycle: "h23", ...options });
  return (seconds) => format.format(1000 * seconds);
};
const HOUR = { hour: "2-digit", minute: "2-digit" }, DAY = { month: "short", day: "numeric" };
export const minute = formatTime(HOUR), second = formatTime({ ...HOUR, second: "2-digit" });
export const day = formatTime(DAY), moment = formatTime({ ...DAY, ...HOUR });

/** A time of day, with its date unless that is the date of `now`. */
export const when = (seconds, now) => (day(seconds) === day(now) ? second : moment)(seconds);

export function duration(seconds) {
  for (const [unit, length] of [["day", 86400], ["hour", 3600], ["minute", 60]]) {
    if (seconds >= length && seconds % length === 0) return count(seconds / length, unit);
  }
  return count(seconds, "second");
}

export const shorten = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
export const nameOf = (arm) => shorten(String(arm), 80);
