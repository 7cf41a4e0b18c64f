//go:build !windows

package dynlib

import "github.com/ebitengine/purego"

func open(name string) (uintptr, error) {
	return purego.Dlopen(name, purego.RTLD_LAZY|purego.RTLD_LOCAL)
}

func closeHandle(handle uintptr) { _ = purego.Dlclose(handle) }

func symbol(handle uintptr, name string) (uintptr, error) { return purego.Dlsym(handle, name) }
