package ort

// ForWebGPU is forWebGPU, for tests.
var ForWebGPU = forWebGPU
