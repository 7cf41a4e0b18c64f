package recipe

import (
	"reflect"

	"github.com/noether-ml/noether/internal/catalog"
	"github.com/noether-ml/noether/internal/config"
	"github.com/noether-ml/noether/internal/study/spec"
)

// Schema returns the JSON Schema of training files, YAML files that describe the training of a
// network. File is the content of one.
func Schema() ([]byte, error) {
	s := config.Schema(reflect.TypeFor[File]())
	properties := s["properties"].(map[string]any)
	spec.AddKinds(properties["data"].(map[string]any), catalog.Data())
	properties["test"] = map[string]any{"$ref": "#/properties/data"}
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "Noether training file"
	return config.EncodeSchema(s)
}
