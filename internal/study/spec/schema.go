package spec

import (
	"reflect"

	"github.com/noether-ml/noether/internal/config"
)

// Schema returns the JSON Schema of study files, which say what to measure. Editors with the YAML
// language server validate a file, and complete its keys, if it starts with
//
//	# yaml-language-server: $schema=PATH-OR-URL
func Schema() ([]byte, error) {
	s := config.Schema(reflect.TypeFor[Study]())
	allowCheckpoints(s["properties"].(map[string]any)["models"].(map[string]any))
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "Noether study file"
	return config.EncodeSchema(s)
}

// allowCheckpoints changes the schema of models, whose entries have either the required keys or the
// key checkpoints, a folder with all networks that a training saved.
func allowCheckpoints(models map[string]any) {
	// models is a list of entries, or one entry: [0] and [1]. Both share the schema of an entry.
	entry := models["anyOf"].([]any)[1].(map[string]any)
	entry["anyOf"] = []any{map[string]any{"required": entry["required"]}, map[string]any{"required": []string{"checkpoints"}}}
	delete(entry, "required")
}
