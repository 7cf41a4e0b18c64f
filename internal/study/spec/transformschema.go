package spec

import "github.com/noether-ml/noether/transform"

// JSONSchema implements config.Schemer. TransformSchema replaces it, which knows the kinds.
func (Transform) JSONSchema() map[string]any { return map[string]any{} }

// TransformSchema returns the schema of an entry of transforms.
func TransformSchema(all []transform.Kind) map[string]any {
	properties := map[string]any{"sequence": map[string]any{
		"type": "array", "description": "transformations that are applied in order", "minItems": 1,
		"items": map[string]any{"type": []string{"object", "string"}, "maxProperties": 1},
	}}
	for _, k := range all {
		properties[k.Name] = kindSchema(k)
	}
	properties["name"] = map[string]any{"type": "string", "description": "name in the scores"}
	properties["per"] = map[string]any{"enum": []string{"sample", "trial"}, "description": "draw for each sample (default), or once for each trial (as seis needs)"}
	properties["tolerance"] = map[string]any{"description": "what scores must keep to, such as effective-invariance.ei >= 0.9: noether breaking-point prints up to which strength they do, and values: auto looks for it",
		"anyOf": []any{map[string]any{"type": "string"}, map[string]any{"type": "array", "items": map[string]any{"type": "string"}, "minItems": 1}}}
	properties["on"] = map[string]any{"enum": []string{"input", "activations"}, "description": "what is transformed: the input (default), or the feature maps"}
	return map[string]any{"anyOf": []any{
		map[string]any{"type": "object", "properties": properties, "additionalProperties": false, "minProperties": 1},
		map[string]any{"enum": kinds(all).names()},
	}}
}

func kindSchema(k transform.Kind) map[string]any {
	properties := map[string]any{}
	for _, p := range k.Params {
		properties[p.Name] = paramSchema(p)
	}
	forms := []any{}
	if len(k.Short) > 0 { // a bare value may stand for the parameters, as in rotate: 30
		principal, _ := k.Param(k.Short[0])
		short := paramSchema(principal)
		forms = append(forms, short["anyOf"].([]any)...)
		properties["values"] = listOfValues
		properties["range"] = rangeOfNumbers
	}
	forms = append(forms, map[string]any{"type": []string{"object", "null"}, "properties": properties, "additionalProperties": false})
	return map[string]any{"description": k.Doc, "anyOf": forms}
}

var (
	rangeOfNumbers = map[string]any{"type": "array", "items": map[string]any{"type": "number"}, "minItems": 2, "maxItems": 2, "title": "range", "description": "uniform between two ends"}
	listOfValues   = map[string]any{"anyOf": []any{map[string]any{"const": "auto"}, map[string]any{"type": "array", "items": map[string]any{"type": []string{"number", "string"}}, "minItems": 1}},
		"title": "values", "description": "list of values, each with its own scores; auto: chosen where scores leave the tolerance of the transformation"}
)

func paramSchema(p transform.Param) map[string]any {
	doc := p.Doc
	if p.Unit != "" {
		doc += " (" + p.Unit + ")"
	}
	values := map[string]any{"type": "object", "properties": map[string]any{"values": listOfValues, "range": rangeOfNumbers}, "additionalProperties": false, "minProperties": 1, "maxProperties": 2, "title": "values-or-range"}
	if p.Text {
		return map[string]any{"description": doc, "type": "string"}
	}
	if p.Options != nil {
		return map[string]any{"description": doc, "anyOf": []any{map[string]any{"enum": p.Options}, values}}
	}
	return map[string]any{"title": "number-range-or-values", "description": doc, "anyOf": []any{map[string]any{"type": "number"}, rangeOfNumbers, values}}
}
