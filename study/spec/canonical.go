package spec

import (
	"encoding/json"
	"fmt"

	"github.com/noether-ml/noether/internal/config"
)

// CanonicalJSON encodes a value that a key depends on. Equal values give equal text.
func CanonicalJSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // cannot happen: the values are plain data
	}
	return string(raw)
}

// Within prefixes an error with its context. An error with a position in the study file keeps the
// position.
func Within(where string, err error) error {
	if placed, ok := err.(*config.Error); ok {
		e := *placed
		e.Msg = where + ": " + e.Msg
		return &e
	}
	return fmt.Errorf("%s: %w", where, err)
}
