extends BoxesMatch

# Plays alone, or joins:   godot --path . -- TICKET
func _ready():
	over.connect(func(why): print(why))
	var args = OS.get_cmdline_user_args()
	var why = play_alone() if args.is_empty() else join(args[0])
	if why != "":
		print(why)
