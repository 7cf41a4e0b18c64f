package ort

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/noether-ml/noether/internal/dynlib"
)

// apiVersion is the version of ONNX Runtime's C API that the binding, the Go package that calls it,
// requests. Library 1.x offers the versions up to x.
const apiVersion = 24

// apiBase is OrtApiBase of the C API: the addresses of two functions.
type apiBase struct {
	getAPI, getVersionString uintptr
}

// inspectLibrary returns the version of a library, its execution providers and its OrtApi. Its
// errors are to follow the path of the library. It is called before the binding loads the library:
// the binding cannot list providers, and of a library that is too old it reports only that a
// function failed.
func inspectLibrary(path string) (version string, providers []string, api unsafe.Pointer, err error) {
	loaded, err := dynlib.Open(path)
	if err != nil && err.Error() == "" { // some loaders give no reason
		err = errors.New("is not a library that this system can load")
	}
	if err != nil {
		return "", nil, nil, oneLine(err)
	}
	var getBase func() unsafe.Pointer
	if err := loaded.Bind(&getBase, "OrtGetApiBase"); err != nil {
		return "", nil, nil, errors.New("is a library, but not ONNX Runtime (it lacks OrtGetApiBase)")
	}
	base := (*apiBase)(getBase())
	var getVersion func() string
	purego.RegisterFunc(&getVersion, base.getVersionString)
	version = getVersion()
	if err := checkVersion(version); err != nil {
		return version, nil, nil, err
	}
	var getAPI func(uint32) unsafe.Pointer
	purego.RegisterFunc(&getAPI, base.getAPI)
	if api = getAPI(apiVersion); api == nil {
		return version, nil, nil, fmt.Errorf("is ONNX Runtime %s without version %d of its C API: %s", version, apiVersion, remedy)
	}
	// The table is an array of function pointers, of which the first apiUsed are read.
	return version, availableProviders((*[apiUsed]uintptr)(api)), api, nil
}

const remedy = "install 1.24 or later ('npm ci --ignore-scripts' in the folder internal/runtime of the checkout does, or 'pip install --upgrade onnxruntime')"

func checkVersion(version string) error {
	parts := strings.Split(version, ".")
	if len(parts) < 2 {
		return fmt.Errorf("gives its version as %q: %s", version, remedy)
	}
	major, err1 := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	if err1 != nil || err2 != nil || major < 1 || major == 1 && minor < apiVersion {
		return fmt.Errorf("is ONNX Runtime %s, which does not fit: %s", version, remedy)
	}
	return nil
}

// availableProviders returns the names of the library's execution providers, or nil if the library
// fails to list them. It panics if there are more than 1,024.
func availableProviders(api *[apiUsed]uintptr) []string {
	var get func(names **[1 << 10]*byte, count *int32) unsafe.Pointer
	var release func(names *[1 << 10]*byte, count int32) unsafe.Pointer
	purego.RegisterFunc(&get, api[apiGetAvailableProviders])
	purego.RegisterFunc(&release, api[apiReleaseAvailableProviders])
	var names *[1 << 10]*byte
	var count int32
	if status := get(&names, &count); status != nil || names == nil {
		return nil
	}
	defer release(names, count)
	var providers []string
	for _, name := range names[:count] {
		providers = append(providers, cString(name))
	}
	return providers
}
