// Package gputest selects the graphics driver for tests that need a WebGPU device.
//
//	gputest.UseDriver(t)
package gputest

import (
	"os"
	"runtime"
	"testing"

	"github.com/noether-ml/noether/internal/dynlib"
)

// driverFile describes SwiftShader, the software driver in Debian's package chromium.
const driverFile = "/usr/lib/chromium/vk_swiftshader_icd.json"

// envGPU is the environment variable that lets tests run on the graphics processor of the machine,
// if it is set.
const envGPU = "NOETHER_TESTGPU"

// UseDriver calls UseSoftwareDriver, unless the environment variable NOETHER_TESTGPU is set: then
// the test runs on the machine's graphics processor, by its own driver.
func UseDriver(t testing.TB) {
	t.Helper()
	if os.Getenv(envGPU) == "" {
		UseSoftwareDriver(t)
	}
}

// UseSoftwareDriver makes Vulkan offer SwiftShader alone during the test, which must not be
// parallel. The test is skipped on other systems than Linux, and where the driver or the Vulkan
// loader is missing.
func UseSoftwareDriver(t testing.TB) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("needs a software Vulkan driver, which is known on Debian only")
	}
	if _, err := os.Stat(driverFile); err != nil {
		t.Skipf("needs %s of Debian's package chromium", driverFile)
	}
	if _, err := dynlib.Open("libvulkan.so.1"); err != nil {
		t.Skip("needs Debian's package libvulkan1")
	}
	t.Setenv("VK_ICD_FILENAMES", driverFile)
	t.Setenv("VK_DRIVER_FILES", driverFile)
}
