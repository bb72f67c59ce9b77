#include "trainer/spec/schema.h"

#include "embedded/data_source_schema_text.h"
#include "embedded/image_schema_text.h"
#include "embedded/layer_schema_text.h"
#include "embedded/stage_schema_text.h"
#include "embedded/training_schema_text.h"
#include "trainer/compute/loss.h"
#include "trainer/spec/kind_fields.h"
#include "trainer/spec/metric.h"
#include "trainer/spec/training_spec.h"

namespace muster::spec {

namespace {

constexpr const char* kRules = "x-kubernetes-validations";

Json layer_schema() {
  constexpr const char* kName = "^[A-Za-z][A-Za-z0-9_-]*$";
  const Json name = {{"type", "string"},
                     {"minLength", 1},
                     {"maxLength", 63},
                     {"pattern", kName},
                     {"nullable", true},
                     {"description",
                      "Name of the layer, by which others refer to it and its "
                      "parameters are saved; kind and number if left out."}};
  Json inputs = {
      {"type", "array"},
      {"minItems", 1},
      {"maxItems", 64},
      {"nullable", true},
      {"description", "Names of earlier layers, or input; the layer before if left out."},
      {"items",
       {{"type", "string"},
        {"minLength", 1},
        {"maxLength", 63},
        {"description", "Name of an earlier layer, or input."}}}};
  const Json trainable = {{"type", "boolean"},
                          {"default", true},
                          {"description", "false: its parameters are never updated."}};
  Json schema = Document::parse(layer_schema_text, "layer.schema.yaml").value();
  for (auto& [kind, layer] : schema["properties"].get_ref<Json::object_t&>()) {
    const bool joins = kind == "add" || kind == "concatenate";
    Json& fields = layer["properties"];
    fields["name"] = name;
    fields["inputs"] = inputs;
    if (joins) {
      fields["inputs"]["minItems"] = 2;
      fields["inputs"].erase("nullable");
    } else {
      fields["inputs"]["maxItems"] = 1;
    }
    const bool weighted = fields.contains("kernelInitializer");
    if (weighted || kind == "batchNormalization") fields["trainable"] = trainable;
    if (weighted) fields["biasInitializer"][kRules] = fields["kernelInitializer"][kRules];
  }
  return schema;
}

Json data_source_schema(const char* description, bool shuffle) {
  Json schema = Document::parse(data_source_schema_text, "data_source.schema.yaml").value();
  schema["description"] = description;
  schema["properties"]["shuffle"]["default"] = shuffle;
  const Json image = Document::parse(image_schema_text, "image.schema.yaml").value();
  for (const char* source : {"imageFolder", "imageCsv", "tfRecord", "coco"})
    schema["properties"][source]["properties"].update(image);
  return schema;
}

Json train_source_schema() {
  Json schema = data_source_schema("What is trained on; exactly one source.", true);
  schema["properties"]["shard"] = {
      {"type", "string"},
      {"enum", {"record", "file"}},
      {"default", "record"},
      {"description",
       "How the group shares the samples. record: one order of all of them, of which everybody "
       "takes "
       "batches in turn. file: each of the n that compute a step's batches together reads files of "
       "its own, every n-th; only synchronously and in a group that is not elastic."}};
  schema["properties"]["augment"] = {
      {"type", "array"},
      {"minItems", 1},
      {"maxItems", 16},
      {"nullable", true},
      {"description",
       "What is done to an image each time it is trained on, stage after stage; decided by the "
       "seed, the epoch and the place in the epoch alone. Nothing if left out."},
      {"items", Document::parse(stage_schema_text, "stage.schema.yaml").value()}};
  schema["x-kubernetes-validations"].push_back(
      {{"rule",
        "!has(self.shard) || self.shard == 'record' || has(self.idx) || has(self.tfRecord) || "
        "(has(self.table) && !(has(self.table.mixed) && self.table.mixed) && "
        "!has(self.table.orderBy) && !has(self.table.groupBy))"},
       {"message",
        "expected record, for only idx, tfRecord and a table in the order of its files have files"},
       {"fieldPath", ".shard"}});
  return schema;
}

// The schema of the field `metric` of earlyStopping and of bestOnly.
Json metric_schema() {
  return {{"type", "string"},
          {"enum", all_metric_names()},
          {"default", kDefaultMetric},
          {"description",
           "What is compared: of losses, RMSE and MAE a lower value is better, of anything else a "
           "higher one. What there is depends on the model's loss."}};
}

// Returns a condition in CEL: that the value is one of these names.
std::string is_one_of(const std::string& value, const std::vector<std::string>& names) {
  if (names.size() == 1) return value + " == '" + names.front() + "'";
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "'" : ", '") + name + "'";
  return value + " in [" + list + "]";
}

// `kind` is the expression in CEL for the name of the object's kind.
Json kind_rule(const KindField& field, const std::string& condition, const std::string& kind,
               const std::string& path) {
  return {{"rule", condition},
          {"messageExpression", "'expected no such field for ' + " + kind + " + ' (it belongs to " +
                                    join(field.kinds) + ")'"},
          {"fieldPath", path}};
}

// Adds the rules for fields of an object. `kind` is as in kind_rule(); `is_kind` turns names into a
// condition.
template <typename Condition>
void add_rules(Json& object, const std::vector<KindField>& fields, const std::string& inside,
               const std::string& kind, Condition is_kind) {
  for (const KindField& field : fields) {
    const std::string name = (inside.empty() ? "" : inside + ".") + field.field;
    const std::string absent = inside.empty() ? "" : "!has(self." + inside + ") || ";
    object[kRules].push_back(kind_rule(
        field, absent + "!has(self." + name + ") || " + is_kind(field.kinds), kind, "." + name));
  }
}

void add_kind_rules(Json& properties) {
  add_rules(properties["optimizer"], optimizer_fields(), "", "self.name",
            [](const auto& names) { return is_one_of("self.name", names); });
  Json& model = properties["model"];
  add_rules(model, model_fields(), "", "(has(self.name) ? self.name : 'layers')",
            [](const auto& names) {
              return "(has(self.name) && " + is_one_of("self.name", names) + ")";
            });
  // Another rule refuses all options of a loss beside a model's name.
  add_rules(model, loss_fields(), "lossOptions",
            "(has(self.loss) ? self.loss : 'softmaxCrossEntropy')", [](const auto& names) {
              return "has(self.name) || (has(self.loss) && " + is_one_of("self.loss", names) + ")";
            });
}

// The schema of the field `metric` of stopWhen.
Json stop_metric_schema() {
  std::vector<std::string> names = {kTrainLoss};
  for (std::string& name : all_metric_names()) names.push_back(std::move(name));
  return {{"type", "string"},
          {"enum", names},
          {"description",
           "trainLoss, the mean of the last whole epoch, which is looked at after each epoch; or a "
           "metric of the evaluations on the validation data, which `evaluation` or an evaluator "
           "makes. What there is depends on the model's loss."}};
}

Json build_schema() {
  Json schema = Document::parse(training_schema_text, "training.schema.yaml").value();
  Json& properties = schema["properties"];
  properties["model"]["properties"]["layers"]["items"] = layer_schema();
  Json& losses = properties["model"]["properties"]["loss"]["enum"];
  for (const auto& loss : compute::all_losses()) {
    const compute::LossDescription& description = compute::describe(loss);
    if (!description.catalogue_only) losses.push_back(description.name);
  }
  add_kind_rules(properties);
  properties["earlyStopping"]["properties"]["metric"] = metric_schema();
  properties["stopWhen"]["properties"]["metric"] = stop_metric_schema();
  properties["checkpoint"]["properties"]["bestOnly"]["properties"]["metric"] = metric_schema();
  Json& data = properties["data"]["properties"];
  data["train"] = train_source_schema();
  data["train"]["properties"]["table"]["properties"].erase("ranking");
  for (const char* name : {"validation", "test"}) {
    const bool test = std::string_view(name) == "test";
    data[name] =
        data_source_schema(test ? "What the final checkpoint is tested with; exactly one source."
                                : "What every checkpoint is evaluated with; exactly one source.",
                           false);
    data[name]["nullable"] = true;
    Json& table = data[name]["properties"]["table"];
    table.erase("required");
    for (const char* field : {"features", "target", "weight"}) table["properties"].erase(field);
  }
  return schema;
}

}  // namespace

const Json& training_schema() {
  static const Json schema = build_schema();
  return schema;
}

}  // namespace muster::spec
