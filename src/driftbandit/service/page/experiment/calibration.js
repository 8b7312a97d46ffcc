// The card that says whether the model's predictions hold.

import { drawSquare, drawSurprises } from "../charts/surprises.js";
import { find, write } from "../elements.js";

export function drawCalibration({ state: { calibration } }) {
  const verdict = find("#verdict");
  verdict.dataset.holds = calibration ? calibration.holds : "";
  write(verdict, calibration ? calibration.summary : "Too few rewards so far.");
  find("#calibration-charts").hidden = !calibration;
  if (!calibration) return;
  drawSurprises(find("#surprises-chart"), calibration.surprises);
  drawSquare(find("#square-chart"), calibration);
}
