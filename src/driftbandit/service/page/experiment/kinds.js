// What changes of the model are called.

export const KINDS = {
  created: "start",
  model_replaced: "new model",
  refitted: "refit",
  arm_added: "arm added",
  arm_retired: "arm retired",
};
