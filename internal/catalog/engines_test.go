package catalog

import (
	"slices"
	"testing"

	"github.com/noether-ml/noether/internal/study/spec"
)

// TestEngines checks that each key by which an entry can name a model has an engine.
func TestEngines(t *testing.T) {
	t.Parallel()
	var keys []string
	for _, e := range Engines() {
		keys = append(keys, e.Key)
	}
	if !slices.Equal(keys, spec.EngineKeys()) {
		t.Errorf("engines for %q, and keys %q", keys, spec.EngineKeys())
	}
}
