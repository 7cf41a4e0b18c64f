package spec

import (
	"maps"
	"reflect"

	"github.com/noether-ml/noether/internal/config"
)

// Schema returns the JSON Schema of study files. Editors with the YAML
// language server validate a file, and complete its keys, if it starts with
//
//	# yaml-language-server: $schema=PATH-OR-URL
func Schema(lists Lists) ([]byte, error) {
	s := config.Schema(reflect.TypeFor[Study]())
	properties := s["properties"].(map[string]any)
	allowSeveral(entrySchema(properties, "models"))
	maps.Copy(entrySchema(properties, "measures"), measuresSchema(lists.Measures))
	maps.Copy(entrySchema(properties, "transforms"), TransformSchema(lists.Transforms))
	AddKinds(entrySchema(properties, "data"), lists.Data)
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "Noether study file"
	return config.EncodeSchema(s)
}

// AddKinds adds the kinds of data to the schema of Data.
func AddKinds(schema map[string]any, kinds []DataKind) {
	properties := schema["properties"].(map[string]any)
	for _, k := range kinds {
		keys := config.Schema(k.Keys)
		keys["description"] = k.Doc
		properties[k.Name] = keys
	}
}

// entrySchema returns the schema of an entry of a list, which its schema as a list and that as a
// single entry share.
func entrySchema(properties map[string]any, list string) map[string]any {
	return properties[list].(map[string]any)["anyOf"].([]any)[1].(map[string]any)
}

// allowSeveral changes the schema of an entry of models, which has a name and a source of
// activations, or a list or glob of them, or the key checkpoints.
func allowSeveral(entry map[string]any) {
	properties := entry["properties"].(map[string]any)
	for _, key := range listed {
		one := properties[key].(map[string]any)
		properties[key] = map[string]any{"description": one["description"], "anyOf": []any{
			map[string]any{"type": "string"}, map[string]any{"type": "array", "minItems": 1, "items": map[string]any{"type": "string"}},
		}}
	}
	var ways []any
	for _, keys := range [][]string{{"name", "onnx"}, {"name", "activations"}, {"checkpoints"}} {
		ways = append(ways, map[string]any{"required": keys})
	}
	for _, key := range listed {
		several := []any{map[string]any{"type": "array"}, map[string]any{"type": "string", "pattern": `[*?\[]`}}
		ways = append(ways, map[string]any{"required": []string{key}, "properties": map[string]any{key: map[string]any{"anyOf": several}}})
	}
	entry["anyOf"] = ways
	delete(entry, "required")
}
