// The card that says whether the model's predictions hold.

import { drawSquare, drawSurprises } from "../charts/surprises.js";
import { find, write } from "../elements.js";
import { whole } from "../format.js";

const FEWEST = 20; // rewards that can be judged

export function drawCalibration({ state }) {
  const { calibration } = state, verdict = find("#verdict");
  verdict.dataset.holds = calibration ? calibration.holds : "";
  write(verdict, calibration ? sentence(calibration) : whyNone(state));
  const isOff = calibration?.holds === false;
  write(find("#advice"), (isOff && calibration.advice) || "");
  find("#findings").hidden = !isOff;
  write(find("#findings p"), isOff ? calibration.summary : "");
  find("#calibration-charts").hidden = !calibration;
  if (!calibration) return;
  drawSurprises(find("#surprises-chart"), calibration.surprises);
  drawSquare(find("#square-chart"), calibration);
}

const sentence = ({ holds, summary }) =>
  holds ? summary : "Rewards are not as the model predicts.";

function whyNone({ arms, window }) {
  if (arms.every(({ mean }) => mean === null)) return "The policy predicts no rewards.";
  const rounds = window === 1 ? "1 round" : `${whole.format(window)} rounds`;
  return `Too few rewards so far: ${FEWEST} must be older than the window (${rounds}).`;
}
