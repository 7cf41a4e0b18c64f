package spec

import (
	"encoding/json"
	"fmt"

	"github.com/noether-ml/noether/internal/config"
)

// CanonicalJSON encodes a value that enters the key of a cell. Equal values give equal text. It
// panics for a v that JSON cannot encode.
func CanonicalJSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // cannot happen: the values are plain data
	}
	return string(raw)
}

// Within prefixes an error with its context, such as the name of a model. An error with a position
// in the study file keeps the position.
func Within(context string, err error) error {
	if positioned, ok := err.(*config.Error); ok {
		e := *positioned
		e.Msg = context + ": " + e.Msg
		return &e
	}
	return fmt.Errorf("%s: %w", context, err)
}
