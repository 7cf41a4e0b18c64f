package plan

import (
	"cmp"
	"fmt"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/gpu"
	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/tensor"
)

const (
	maxBatch       = 64  // larger batches are not faster: activations no longer fit the cache
	maxDeviceBatch = 256 // on a graphics processor
	// Bounds on the activations of a clean and a transformed batch, for each core or on a graphics
	// processor. If all ReLUs of a ResNet-18 are read on two cores, that holds batches of 16
	// images; three fifths of it hold batches of 10, and each image takes 9 % more time.
	coreActivationMemory   = 160 << 20
	deviceActivationMemory = 1 << 30

	imageMemory      = 96 << 20 // bytes for images that wait for the engine, on two cores
	coreImageMemory  = 48 << 20 // the same for each core if there are more than two
	minWorkingMemory = 8 << 10  // bytes per sample that the engine uses internally

	// On the CPU a batch has for each core coreImages samples, or as many as have coreActivations
	// bytes if these are more: they are still in the cache when they are measured.
	coreImages      = 8        // fewer are slower to compute
	coreActivations = 12 << 20 // bytes; those of clean and transformed samples
)

// MemoryLimits are the limits of what a pass holds in memory, in bytes. They follow from the
// study's bound, the process's limit, the free memory and the device, and affect only speed.
type MemoryLimits struct {
	Accumulators int64 // of a pass; a task that needs more runs alone
	activations  int64 // of the clean and the transformed batches in progress
	images       int64 // inputs that wait for the engine
	batch        int64 // largest number of samples in a batch
	cores        int64 // that share a batch
	// slots is the number of batches in memory: two if a device computes one while another is
	// measured.
	slots  int64
	keeps  bool  // whether the device has memory of its own, where activations can stay
	device int64 // memory of the device; 0: not known, or the CPU, whose memory the others bound
}

const (
	baseMemory = 192 << 20 // bytes for the program, its libraries and a model of moderate size
	minBuffer  = 4 << 20   // bytes; smaller buffers slow down the run more than they save memory
)

// DivideMemory divides the memory of a pass. Accumulators get the study's bound or, without one, a
// quarter of the free memory if that exceeds the default. Activations and images get a quarter and
// three eighths of the bound, within maxActivations, imageMemory and minBuffer; without a bound, a
// 32nd of the free memory if that is more (images on the CPU only). Under a limit of the process
// accumulators get at most half, and activations and images an eighth each.
func DivideMemory(s *spec.Study, o *Options) MemoryLimits {
	memory, most := int64(s.Memory), maxActivations(o)
	out := MemoryLimits{Accumulators: memory, activations: min(most, max(memory/4, minBuffer)), images: min(imageMemory, max(memory/8*3, minBuffer)),
		batch: maxBatch, cores: int64(o.Workers()), slots: 1}
	if !s.BoundsMemory() {
		out.Accumulators = max(memory, o.Free/4)
		out.activations = min(most, max(out.activations, o.Free/32))
		if ort.OnCPU(o.Device) { // a device is not faster with larger batches of images
			out.images = min(max(imageMemory, coreImageMemory*out.cores), max(out.images, o.Free/32))
		}
	}
	if o.Memory > 0 {
		free := available(o.Memory)
		out.Accumulators = min(out.Accumulators, free/2)
		out.activations = min(out.activations, max(free/8, minBuffer))
		out.images = min(out.images, max(free/8, minBuffer))
	}
	if !ort.OnCPU(o.Device) {
		out.useDevice(ort.DeviceOf(o.Device).Adapter)
		out.keeps = ort.HasMemory(o.Device)
	}
	return out
}

// maxActivations returns the most bytes for two batches, clean and transformed.
func maxActivations(o *Options) int64 {
	most := coreActivationMemory * int64(o.Workers())
	if !ort.OnCPU(o.Device) && ort.DeviceOf(o.Device).Adapter.Kind != gpu.Software {
		most = max(most, deviceActivationMemory)
	}
	return most
}

// useDevice gives batches half of the device's free memory, or of three quarters of its memory
// where its driver does not tell what is free: the engine keeps buffers of other sizes.
func (l *MemoryLimits) useDevice(a gpu.Adapter) {
	l.slots = 2
	if a.Kind != gpu.Software { // a graphics processor, not one that the CPU emulates
		l.batch = maxDeviceBatch
	}
	free := cmp.Or(a.Free, a.Memory/4*3)
	l.device = free / 2
}

// available returns four fifths of a limit less baseMemory, but at least a quarter. The rest is a
// margin.
func available(limit int64) int64 { return max(limit/5*4-baseMemory, limit/4) }

// MemoryWarning returns a warning if the study's bound exceeds the process limit, else "". The
// bound is kept, because it decides which intervals fit into memory.
func MemoryWarning(s *spec.Study, limit int64) string {
	if limit <= 0 || int64(s.Memory) <= available(limit) {
		return ""
	}
	return fmt.Sprintf("the study lets accumulators use %d MiB, and this process is limited to %d MiB: if it is killed, request more memory, or set a lower memory in the study",
		s.Memory>>20, limit>>20)
}

// read is the size in bytes of the activations that are read of a sample, clean and transformed.
func (l MemoryLimits) cachedBatch(read int64) int64 {
	return l.cores * max(coreImages, coreActivations/max(read, 1))
}

// BatchSize returns how many samples the engine runs at once: the study's batch if it fits the
// device, else the most that buffers and device memory allow. Scores do not depend on it.
func BatchSize(s *spec.Study, p *Pass, limits MemoryLimits) int {
	if batch := s.Batch; batch > 0 {
		if p.mostBatch > 0 {
			batch = min(batch, p.mostBatch)
		}
		if block := p.Data().Layout.Block; len(p.Reductions) > 0 && batch > block {
			batch -= batch % block // reductions need whole blocks
		}
		return max(1, min(batch, p.Hi-p.lo)) // the pass has Hi - lo samples
	}
	var activations, read, images, device int64
	for _, m := range p.Models {
		var bound int64 // bytes of the buffers for one sample: 4 for each value of the layers that are read, and of reductions
		layers, _ := p.CopiedLayers(m)
		for _, l := range layers {
			bound += 4 * int64(tensor.Size(l.Shape))
		}
		for _, r := range p.Reductions[m].List {
			bound += 4 * int64(r.Values.Width)
		}
		working := m.Net.WorkingBytes() // what the engine needs for one sample besides the buffers
		if limits.slots > 1 {
			device += bound + working + p.Reductions[m].deviceBytes(limits.slots)
			working = 0
		}
		read += 2 * bound
		activations += max(2*limits.slots*bound, 2*working, minWorkingMemory) // 2: clean and transformed
		images += 6 * m.Net.InputBytes()                                      // clean and transformed, in about three batches that are prepared, wait or run
	}
	batch := min(limits.batch, limits.activations/activations, limits.images/max(images, 1))
	if limits.slots == 1 {
		batch = min(batch, limits.cachedBatch(read))
	}
	if p.mostBatch > 0 {
		batch = min(batch, int64(p.mostBatch))
	}
	if limits.device > 0 {
		batch = min(batch, limits.device/max(device, 1))
	}
	if block := int64(p.Data().Layout.Block); batch > block {
		// A multiple of the block: measures that work on blocks need not buffer parts.
		batch -= batch % block
	}
	return int(max(1, min(batch, int64(p.Hi-p.lo))))
}
