package catalog

import (
	"context"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/engine/oip"
	"github.com/noether-ml/noether/engine/recorded"
	"github.com/noether-ml/noether/internal/functions"
	"github.com/noether-ml/noether/internal/study/spec"
)

// Engines returns the engines, one for each of spec.EngineKeys.
func Engines() []spec.Engine {
	return []spec.Engine{
		{Key: "onnx", Open: func(_ context.Context, _ spec.Model, path string, o spec.EngineOptions) (engine.Network, error) {
			return o.ONNX(path)
		}},
		{Key: "activations", Open: func(ctx context.Context, entry spec.Model, path string, _ spec.EngineOptions) (engine.Network, error) {
			net, err := recorded.Open(ctx, path)
			return at(entry, net, err)
		}},
		{Key: "url", Open: func(ctx context.Context, entry spec.Model, path string, o spec.EngineOptions) (engine.Network, error) {
			net, err := oip.Open(ctx, path, oip.Options{Version: entry.Version, Note: o.Note})
			return at(entry, net, err)
		}},
		{Key: "python", Open: func(ctx context.Context, entry spec.Model, _ string, o spec.EngineOptions) (engine.Network, error) {
			net, err := functions.OpenModel(ctx, entry.Python, oip.Options{Note: o.Note})
			return at(entry, net, err)
		}},
	}
}

// at adds the position of a model's address in the study file to an error.
func at(entry spec.Model, net engine.Network, err error) (engine.Network, error) {
	if err != nil {
		return nil, entry.Address().Errorf("%w", err)
	}
	return net, nil
}
