package gpu

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/gpu/gputest"
)

// TestVulkanListsTheSoftwareDriver checks that SwiftShader, a driver that renders on the CPU, is
// listed.
func TestVulkanListsTheSoftwareDriver(t *testing.T) {
	gputest.UseSoftwareDriver(t)
	list := Vulkan()
	if len(list) != 1 || !strings.Contains(list[0].Name, "SwiftShader") || list[0].Kind != Software {
		t.Fatalf("adapters %+v, want SwiftShader alone", list)
	}
}

func TestVulkanWithoutDrivers(t *testing.T) {
	t.Setenv("VK_ICD_FILENAMES", filepath.Join(t.TempDir(), "none.json"))
	t.Setenv("VK_DRIVER_FILES", filepath.Join(t.TempDir(), "none.json"))
	if list := Vulkan(); len(list) != 0 {
		t.Errorf("adapters %+v without a driver", list)
	}
}

// TestAdapterOrder checks that discrete GPUs come first, then integrated ones, then software.
func TestAdapterOrder(t *testing.T) {
	t.Parallel()
	list := sorted([]Adapter{{Name: "a", Kind: Software}, {Name: "b", Kind: Integrated}, {Name: "c", Kind: Discrete}, {Name: "d", Kind: Integrated}})
	var names []string
	for _, a := range list {
		names = append(names, a.Name)
	}
	if want := []string{"c", "b", "d", "a"}; !slices.Equal(names, want) {
		t.Errorf("order %v, want %v", names, want)
	}
}

// TestCUDA compiles a replacement of NVIDIA's driver library with the functions that cudaOf calls.
// The second of its three devices fails.
func TestCUDA(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("needs a C compiler that builds shared libraries for Linux or macOS")
	}
	folder := t.TempDir()
	source, library := filepath.Join(folder, "driver.c"), filepath.Join(folder, "driver.so")
	// The first device has 80 GiB, the third a quarter of that. 101 is CUDA_ERROR_INVALID_DEVICE.
	if err := os.WriteFile(source, []byte(`#include <string.h>
int cuInit(unsigned flags) { return flags ? 1 : 0; }
int cuDeviceGetCount(int *n) { *n = 3; return 0; }
int cuDeviceGetName(char *name, int size, int device) { strncpy(name, device ? "Third" : "NVIDIA H100", size); return device == 1 ? 101 : 0; }
int cuDeviceTotalMem_v2(unsigned long long *bytes, int device) { *bytes = (85899345920ull >> device); return 0; }
`), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cc", "-shared", "-fPIC", "-o", library, source).CombinedOutput(); err != nil {
		t.Fatalf("cc: %v: %s", err, out)
	}
	want := []Adapter{{Name: "NVIDIA H100", Kind: Discrete, Memory: 80 << 30}, {Name: "Third", Kind: Discrete, Memory: 20 << 30}}
	if got := cudaOf(library); !slices.Equal(got, want) {
		t.Errorf("adapters %+v, want %+v", got, want)
	}
	if got := cudaOf(filepath.Join(folder, "none.so")); got != nil {
		t.Errorf("adapters %+v without a driver", got)
	}
}
