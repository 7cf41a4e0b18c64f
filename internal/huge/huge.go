// Package huge makes large slices of numbers in huge pages where the system has them: memory that is walked through again and
// again then takes fewer page faults and fewer walks through page tables, which are what a virtual machine is slow at.
package huge

// Make is make([]T, n), in huge pages where they are to be had.
func Make[T float32 | float64](n int) []T {
	s := make([]T, n)
	advise(s)
	return s
}
