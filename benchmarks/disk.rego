package main

import rego.v1

deny contains message if {
	some each in input.planned_values.root_module.resources
	each.type == "google_container_node_pool"
	some config in each.values.node_config
	some disk in config.boot_disk
	disk.size_gb > MOST_GB
	message := sprintf("%s: boot disk of %d GB", [each.address, disk.size_gb])
}
