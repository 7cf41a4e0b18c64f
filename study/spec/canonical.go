package spec

import (
	"encoding/json"
	"fmt"

	"github.com/noether-ml/noether/internal/config"
)

// CanonicalJSON encodes what a key depends on; equal values give equal text.
func CanonicalJSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // what keys depend on are plain values
	}
	return string(raw)
}

// Within says where an error arose, after its place in the study file if it has one.
func Within(where string, err error) error {
	if placed, ok := err.(*config.Error); ok {
		e := *placed
		e.Msg = where + ": " + e.Msg
		return &e
	}
	return fmt.Errorf("%s: %w", where, err)
}
