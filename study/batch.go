package study

import (
	"github.com/noether-ml/noether/tensor"
)

const (
	maxBatch         = 64       // more no longer pays: activations leave the cache
	activationMemory = 64 << 20 // for the bound outputs of a clean and a moved batch
	pictureMemory    = 96 << 20 // for pictures on their way to the engine
	minWorkingMemory = 8 << 10  // bytes a sample that the engine uses inside
)

// batchFor chooses how many samples a run of the engine takes: as many as the buffers of all models allow, since nothing
// but speed and memory depends on it.
func (s *Study) batchFor(p *pass) int {
	if s.Batch > 0 {
		return max(1, min(s.Batch, p.hi-p.lo))
	}
	var activations, pictures int64
	for _, m := range p.models {
		var bound int64
		layers, _ := p.layers(m)
		for _, l := range layers {
			bound += 4 * int64(tensor.Size(l.Shape))
		}
		activations += max(2*bound, 2*m.model.WorkingBytes(), minWorkingMemory)
		pictures += 6 * m.model.InputBytes()
	}
	batch := min(activationMemory/activations, pictureMemory/max(pictures, 1))
	return int(max(1, min(maxBatch, batch, int64(p.hi-p.lo))))
}
