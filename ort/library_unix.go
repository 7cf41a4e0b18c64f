//go:build !windows

package ort

import "github.com/ebitengine/purego"

func openLibrary(name string) (uintptr, error) {
	return purego.Dlopen(name, purego.RTLD_LAZY|purego.RTLD_LOCAL)
}

func closeLibrary(handle uintptr) { _ = purego.Dlclose(handle) }

func symbol(handle uintptr, name string) (uintptr, error) { return purego.Dlsym(handle, name) }
