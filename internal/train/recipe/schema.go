package recipe

import (
	"reflect"

	"github.com/noether-ml/noether/internal/config"
)

// Schema returns the JSON Schema of training files, YAML files that describe the training of a
// network. File is the content of one.
func Schema() ([]byte, error) {
	s := config.Schema(reflect.TypeFor[File]())
	s["properties"].(map[string]any)["test"] = map[string]any{"$ref": "#/properties/data"}
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "Noether training file"
	return config.EncodeSchema(s)
}
