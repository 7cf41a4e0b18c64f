package ort

import "github.com/noether-ml/noether/engine"

// ForWebGPU is forWebGPU, for tests.
var ForWebGPU = forWebGPU

// ShapeSources is shapeSources, for tests.
var ShapeSources = shapeSources

// ShapeOutputs returns the number of outputs of a session that reads the shapes of tensors, and of
// the tensors from whose shapes the others follow.
func ShapeOutputs(n *Network, feed engine.Feed, names []string) (outputs, sources int, err error) {
	p, err := n.newShapeReader(feed, names)
	if err != nil {
		return 0, 0, err
	}
	defer p.close()
	return len(p.session.Outputs()), len(p.sources), nil
}

// JoinedShapes is joinedShapes, for tests.
const JoinedShapes = joinedShapes
