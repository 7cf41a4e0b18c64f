package plan

import (
	"fmt"

	"github.com/noether-ml/noether/study/spec"
	"github.com/noether-ml/noether/tensor"
)

const (
	maxBatch         = 64       // more no longer pays: activations leave the cache
	activationMemory = 64 << 20 // for the bound outputs of a clean and a moved batch
	imageMemory      = 96 << 20 // for images on their way to the engine
	minWorkingMemory = 8 << 10  // bytes a sample that the engine uses inside
)

// A memoryShares is the memory that a pass may take. It follows from the study's bound and from
// what the process may hold at all; nothing but speed depends on it.
type memoryShares struct {
	Accumulators int64 // of a pass; one that takes more by itself runs alone
	activations  int64
	images       int64
}

const (
	baseMemory  = 192 << 20 // for the program, its libraries and a model of moderate size
	leastBuffer = 4 << 20   // below this a batch costs more than it saves
)

// ShareMemory shares out the study's bound: by default a quarter of it again for activations. Where
// the process may hold little, accumulators get half of that at most, and buffers a quarter.
func ShareMemory(s *spec.Study, limit int64) memoryShares {
	memory := int64(s.Memory)
	out := memoryShares{memory, min(activationMemory, max(memory/4, leastBuffer)), min(imageMemory, max(memory/8*3, leastBuffer))}
	if limit > 0 {
		free := available(limit)
		out.Accumulators = min(out.Accumulators, free/2)
		out.activations = min(out.activations, max(free/8, leastBuffer))
		out.images = min(out.images, max(free/8, leastBuffer))
	}
	return out
}

// available is what a limit leaves to a pass.
func available(limit int64) int64 { return max(limit/5*4-baseMemory, limit/4) }

// MemoryWarning warns of a study whose accumulators may hold more than the process may. The study's
// bound is not changed for it: scores depend on it, since it decides which intervals can be
// afforded.
func MemoryWarning(s *spec.Study, limit int64) string {
	if limit <= 0 || int64(s.Memory) <= available(limit) {
		return ""
	}
	return fmt.Sprintf("the study lets accumulators hold %d MiB, and this process may hold %d MiB in all: if it is killed, ask for more, or set memory: lower",
		s.Memory>>20, limit>>20)
}

// BatchSize chooses how many samples a run of the engine takes: as many as the buffers of all
// models allow, since nothing but speed and memory depends on it.
func BatchSize(s *spec.Study, p *Pass, room memoryShares) int {
	if s.Batch > 0 {
		return max(1, min(s.Batch, p.Hi-p.lo))
	}
	var activations, images int64
	for _, m := range p.Models {
		var bound int64
		layers, _ := p.Layers(m)
		for _, l := range layers {
			bound += 4 * int64(tensor.Size(l.Shape))
		}
		activations += max(2*bound, 2*m.Net.WorkingBytes(), minWorkingMemory)
		images += 6 * m.Net.InputBytes()
	}
	batch := min(maxBatch, room.activations/activations, room.images/max(images, 1))
	if block := int64(p.Data().Layout.Block); batch > block {
		batch -= batch % block // so that measures that work by the block need not keep parts of it
	}
	return int(max(1, min(batch, int64(p.Hi-p.lo))))
}
