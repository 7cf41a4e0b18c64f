package scores

// Functions that the tests call.
var (
	OverValues = overValues
	OverTrials = overTrials
	ScanCell   = scanCell
)
