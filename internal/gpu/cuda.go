package gpu

import (
	"runtime"
	"unsafe"

	"github.com/noether-ml/noether/internal/dynlib"
)

// CUDA returns the adapters that NVIDIA's driver lists, in its order; ONNX Runtime uses the first.
// It returns none where the driver is missing.
func CUDA() []Adapter {
	name := "libcuda.so.1"
	if runtime.GOOS == "windows" {
		name = "nvcuda.dll"
	}
	return cudaOf(name)
}

// cudaOf is CUDA with the driver's library at a path.
func cudaOf(path string) []Adapter {
	library, err := dynlib.Open(path)
	if err != nil {
		return nil
	}
	var start func(flags uint32) int32
	var deviceCount func(count *int32) int32
	var deviceName func(name unsafe.Pointer, size, device int32) int32
	var deviceMemory func(bytes *uint64, device int32) int32
	for function, symbol := range map[any]string{
		&start: "cuInit", &deviceCount: "cuDeviceGetCount", &deviceName: "cuDeviceGetName", &deviceMemory: "cuDeviceTotalMem_v2",
	} {
		if library.Bind(function, symbol) != nil {
			return nil
		}
	}
	var count int32
	if start(0) != 0 || deviceCount(&count) != 0 {
		return nil
	}
	var list []Adapter
	for d := range min(count, maxAdapters) {
		var name [256]byte
		var memory uint64
		if deviceName(unsafe.Pointer(&name[0]), int32(len(name)), d) != 0 || deviceMemory(&memory, d) != 0 {
			continue
		}
		list = append(list, Adapter{Name: text(name[:]), Kind: Discrete, Memory: int64(memory)})
	}
	return list
}
