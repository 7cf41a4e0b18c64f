package study

import (
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

const (
	maxBatch         = 64       // more no longer pays: activations leave the cache
	activationMemory = 64 << 20 // for the bound outputs of a clean and a moved batch
	pictureMemory    = 96 << 20 // for pictures on their way to the engine
	minWorkingMemory = 8 << 10  // bytes a sample that the engine uses inside
)

// batchFor chooses how many samples a run of the engine takes: as many as the buffers allow, since nothing but speed and
// memory depends on it.
func (s *Study) batchFor(p *pass, layers []onnx.Layer) int {
	if s.Batch > 0 {
		return max(1, min(s.Batch, p.hi-p.lo))
	}
	var activations int64
	for _, l := range layers {
		activations += 4 * int64(tensor.Size(l.Shape))
	}
	picture := p.model.model.InputBytes()
	batch := min(activationMemory/max(2*activations, 2*p.model.model.WorkingBytes(), minWorkingMemory), pictureMemory/max(6*picture, 1))
	return int(max(1, min(maxBatch, batch, int64(p.hi-p.lo))))
}
