package exchange

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// An Evaluator says what a record of Every Eval Ever states about who evaluated which model, and a
// run does not know.
type Evaluator struct {
	Organisation string // that provides the data; "": unknown
	Relationship string // to the model: first_party, third_party, collaborative or other; "": other
	Model        string // ORGANISATION/NAME of the model; "": its address on the Hugging Face hub, or its name
}

// Relationships lists the values of Evaluator.Relationship.
var Relationships = []string{"first_party", "third_party", "collaborative", "other"}

// evalSchema is the version of the schema that WriteEvalEver follows.
const evalSchema = "0.3.0"

type object = map[string]any

// WriteEvalEver writes the scores of one model as a record of Every Eval Ever (JSON). It returns
// the number of scores that have no value and are left out.
func (r *Run) WriteEvalEver(w io.Writer, by Evaluator) (without int, err error) {
	rows, without, err := r.shown()
	if err != nil {
		return 0, err
	}
	name, err := one(rows, "a record of Every Eval Ever")
	if err != nil {
		return 0, err
	}
	model := r.model(name, by.Model)
	// The time of the run, not of the export, so that equal runs give equal files.
	at := r.Record.Started
	if r.Record.Finished != nil {
		at = *r.Record.Finished
	}
	when := strconv.FormatInt(at.Unix(), 10)
	titles := r.titles()
	results := []object{}
	for i := range rows {
		row := &rows[i]
		statistic := titles.Statistic(row)
		results = append(results, object{
			"evaluation_result_id": id(row),
			"evaluation_name":      row.Measure,
			"source_data":          r.source(row.Data),
			"metric_config":        metric(statistic, row, sentence(titles, row)),
			"score_details":        details(row),
		})
	}
	out := object{
		"schema_version": evalSchema, "evaluation_id": fmt.Sprintf("%s/%s/%s", slug(r.Record.Study), model["id"], when),
		"evaluation_timestamp": at.UTC().Format("2006-01-02T15:04:05Z"), "retrieved_timestamp": when,
		"source_metadata": object{
			"source_name": "Noether", "source_type": "evaluation_run",
			"source_organization_name": orElse(by.Organisation, "unknown"), "evaluator_relationship": orElse(by.Relationship, "other"),
		},
		"eval_library":       object{"name": "noether", "version": orElse(r.Record.Noether, "unknown"), "additional_details": object{"seed": strconv.FormatUint(r.Record.Seed, 10)}},
		"model_info":         model,
		"evaluation_results": results,
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return without, e.Encode(out)
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// model describes a model. The schema wants the name of the Hugging Face hub as its id.
func (r *Run) model(name, id string) object {
	details := object{"deployment_type": "self_deployed", "model_availability": "unknown"}
	for _, m := range r.Record.Models {
		if m.Name != name {
			continue
		}
		if hub, found := strings.CutPrefix(m.Path, "hf://"); found && id == "" {
			if parts := strings.SplitN(hub, "/", 3); len(parts) > 1 {
				id, _, _ = strings.Cut(parts[0]+"/"+parts[1], "@")
			}
		}
		if m.SHA256 != "" {
			details["sha256"] = m.SHA256
		}
		for key, value := range m.Tags {
			if _, known := details[key]; !known {
				details[key] = value
			}
		}
	}
	out := object{"name": name, "id": orElse(id, name), "additional_details": details,
		"inference_engine": object{"name": "ONNX Runtime", "version": orElse(r.Record.Engine.ONNXRuntime, "unknown")}}
	if developer, _, found := strings.Cut(id, "/"); found {
		out["developer"] = developer
	}
	return out
}

// source describes a data set: a run knows its kind and content, and not where it is published.
func (r *Run) source(name string) object {
	details := object{}
	for _, d := range r.Record.Data {
		if d.Name == name {
			details = object{"kind": d.Kind, "samples": strconv.Itoa(d.N), "fingerprint": d.Fingerprint}
		}
	}
	return object{"dataset_name": orElse(name, "unknown"), "source_type": "other", "additional_details": details}
}

func metric(s measure.StatisticDescriptor, row *scores.Row, text string) object {
	bound := func(v float64) any {
		switch {
		case math.IsInf(v, 1):
			return "Infinity"
		case math.IsInf(v, -1):
			return "-Infinity"
		}
		return v
	}
	more := object{"direction": orElse(string(s.Direction), "neither end is better")}
	parameters := object{}
	for key, value := range map[string]string{"transformation": row.Transform, "parameter": row.Parameter, "layer": row.Layer,
		"other_model": row.OtherModel, "other_layer": row.OtherLayer, "variant": row.Variant, "factor": row.Factor} {
		if value != "" {
			parameters[key] = value
		}
	}
	out := object{
		"evaluation_description": text, "metric_id": "noether." + row.Measure + "." + row.Statistic, "metric_name": s.Title,
		"metric_parameters": parameters, "lower_is_better": s.Direction == measure.Lower, "additional_details": more,
	}
	if s.Unit != "" {
		out["metric_unit"] = s.Unit
	}
	if s.Range != (measure.Range{}) { // of a statistic that is described
		out["score_type"], out["min_score"], out["max_score"] = "continuous", bound(s.Range.Low), bound(s.Range.High)
	}
	return out
}

func details(row *scores.Row) object {
	uncertainty := object{"num_samples": row.N}
	if !math.IsNaN(row.Low) && !math.IsNaN(row.High) {
		uncertainty["confidence_interval"] = object{"lower": row.Low, "upper": row.High, "confidence_level": 0.95}
	}
	out := object{"score": row.Value, "uncertainty": uncertainty}
	more := object{}
	if !math.IsNaN(row.Null) {
		more["chance"] = strconv.FormatFloat(row.Null, 'g', -1, 64)
	}
	if row.Warning != "" {
		more["warning"] = row.Warning
	}
	if len(more) > 0 {
		out["details"] = more
	}
	return out
}
