package ort

import (
	"errors"
	"testing"

	"github.com/noether-ml/noether/engine"
)

// TestExplainDeviceErrors checks that messages of Dawn (the WebGPU implementation), Vulkan, CUDA
// and ONNX Runtime's allocator become errors that say whether the device lacks memory or is lost,
// and that on the CPU they do not.
func TestExplainDeviceErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text         string
		memory, lost bool
	}{
		{text: "WebGPU validation failed. [Device] is lost.\n - While calling [Queue].Submit", lost: true},
		{text: "WebGPU validation failed. The device is lost.", lost: true},
		{text: "vkQueueSubmit failed with VK_ERROR_DEVICE_LOST", lost: true},
		{text: "Failed to download data from buffer. wgpu::MapAsyncStatus value: 3", lost: true},
		{text: "CUDA failure 719: unspecified launch failure ; GPU=0", lost: true},
		{text: "WebGPU validation failed. Buffer size (2516582400) exceeds the max buffer size limit (1073741824).", memory: true},
		{text: "CUDA failure 2: out of memory ; GPU=0", memory: true},
		{text: "bfc_arena.cc:376 Failed to allocate memory for requested buffer of size 4294967296", memory: true},
		{text: "Non-zero status code returned while running Conv node."},
	} {
		err := (&Session{}).explain("running a graph", errors.New(c.text))
		if errors.Is(err, engine.ErrDeviceMemory) != c.memory || errors.Is(err, engine.ErrDeviceLost) != c.lost {
			t.Errorf("%q: %v; want memory %v, lost %v", c.text, err, c.memory, c.lost)
		}
		err = (&Session{onCPU: true}).explain("running a graph", errors.New(c.text))
		if errors.Is(err, engine.ErrDeviceMemory) || errors.Is(err, engine.ErrDeviceLost) {
			t.Errorf("%q on the CPU: %v", c.text, err)
		}
	}
}
