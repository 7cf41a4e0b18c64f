package spec

import (
	"context"

	"github.com/noether-ml/noether/engine"
)

// An Engine opens the models that entries of a study name by a key. Package catalog lists them.
type Engine struct {
	Key string // of the entry, one of EngineKeys
	// Open opens the model of an entry, whose file, folder or address is path.
	Open func(ctx context.Context, entry Model, path string, o EngineOptions) (engine.Network, error)
}

// EngineOptions are what engines need beside the entry.
type EngineOptions struct {
	ONNX func(path string) (engine.Network, error) // opens a file with ONNX Runtime, which the caller has loaded
	Note func(text string)                         // gets warnings
}

// EngineKeys returns the keys of an entry by which it names its model.
func EngineKeys() []string { return []string{"onnx", "activations", "url", "python"} }

// Engine returns the key by which the entry names its model.
func (m Model) Engine() string {
	switch {
	case m.Activations.text != "":
		return "activations"
	case m.URL != "":
		return "url"
	case m.Python != "":
		return "python"
	}
	return "onnx"
}

// OpenNetwork opens the model of an entry of the study, whose file, folder or address is path.
func (s *Study) OpenNetwork(ctx context.Context, entry Model, path string, o EngineOptions) (engine.Network, error) {
	key := entry.Engine()
	for _, e := range s.lists.Engines {
		if e.Key == key {
			return e.Open(ctx, entry, path, o)
		}
	}
	return nil, entry.Address().Errorf("no engine opens %s", key)
}
