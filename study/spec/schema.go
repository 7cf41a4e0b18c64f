package spec

import (
	"reflect"

	"github.com/noether-ml/noether/internal/config"
)

// Schema returns the JSON Schema of study files. Editors with the YAML language server validate a
// file, and complete its keys, if it starts with
//
//	# yaml-language-server: $schema=PATH-OR-URL
func Schema() ([]byte, error) {
	s := config.Schema(reflect.TypeFor[Study]())
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "Noether study file"
	return config.EncodeSchema(s)
}
