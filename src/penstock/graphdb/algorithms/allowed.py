"""The allowlist of NetworkX functions: analytics that read one graph.

It excludes functions that draw, read or write files, generate graphs, modify their argument, take
two graphs or require a callback.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.graphdb.algorithms.algorithm import Category

_BY_CATEGORY: Mapping[Category, str] = {
    "centrality": """
        approximate_current_flow_betweenness_centrality betweenness_centrality
        betweenness_centrality_subset closeness_centrality communicability_betweenness_centrality
        current_flow_betweenness_centrality current_flow_closeness_centrality degree_centrality
        dispersion edge_betweenness_centrality edge_betweenness_centrality_subset
        edge_current_flow_betweenness_centrality edge_load_centrality eigenvector_centrality
        eigenvector_centrality_numpy estrada_index global_reaching_centrality
        group_betweenness_centrality group_closeness_centrality group_degree_centrality
        group_in_degree_centrality group_out_degree_centrality harmonic_centrality hits
        in_degree_centrality information_centrality katz_centrality katz_centrality_numpy
        laplacian_centrality load_centrality local_reaching_centrality out_degree_centrality
        pagerank percolation_centrality second_order_centrality subgraph_centrality
        subgraph_centrality_exp trophic_differences trophic_incoherence_parameter trophic_levels
        voterank
    """,
    "community": """
        articulation_points attracting_components biconnected_component_edges biconnected_components
        bridges chain_decomposition condensation connected_components has_bridges is_biconnected
        is_connected is_semiconnected is_strongly_connected is_weakly_connected k_edge_components
        kosaraju_strongly_connected_components local_bridges node_connected_component
        number_attracting_components number_connected_components
        number_strongly_connected_components number_weakly_connected_components
        strongly_connected_components weakly_connected_components community.asyn_fluidc
        community.asyn_lpa_communities community.fast_label_propagation_communities
        community.girvan_newman community.greedy_modularity_communities
        community.k_clique_communities community.kernighan_lin_bisection
        community.label_propagation_communities community.louvain_communities
        community.louvain_partitions community.modularity
        community.naive_greedy_modularity_communities community.partition_quality
    """,
    "pathfinding": """
        all_pairs_bellman_ford_path_length all_pairs_dijkstra_path_length all_pairs_shortest_path
        all_pairs_shortest_path_length all_shortest_paths all_simple_edge_paths all_simple_paths
        ancestors astar_path_length average_shortest_path_length barycenter bellman_ford_path
        bellman_ford_path_length bellman_ford_predecessor_and_distance bfs_edges bfs_layers
        bfs_predecessors bfs_successors bfs_tree bidirectional_dijkstra bidirectional_shortest_path
        center dag_longest_path dag_longest_path_length descendants descendants_at_distance
        dfs_edges dfs_postorder_nodes dfs_predecessors dfs_preorder_nodes dfs_successors dfs_tree
        diameter dijkstra_path dijkstra_path_length dijkstra_predecessor_and_distance eccentricity
        edge_bfs edge_dfs edge_disjoint_paths efficiency eulerian_circuit eulerian_path find_cycle
        find_negative_cycle floyd_warshall global_efficiency goldberg_radzik has_eulerian_path
        has_path johnson local_efficiency lowest_common_ancestor multi_source_dijkstra_path
        multi_source_dijkstra_path_length negative_edge_cycle node_disjoint_paths periphery radius
        resistance_distance shortest_path shortest_path_length shortest_simple_paths simple_cycles
        single_source_bellman_ford_path single_source_bellman_ford_path_length
        single_source_dijkstra single_source_dijkstra_path single_source_dijkstra_path_length
        single_source_shortest_path single_source_shortest_path_length single_target_shortest_path
        single_target_shortest_path_length topological_generations topological_sort voronoi_cells
    """,
    "similarity": """
        adamic_adar_index cn_soundarajan_hopcroft common_neighbor_centrality jaccard_coefficient
        panther_similarity preferential_attachment ra_index_soundarajan_hopcroft
        resource_allocation_index simrank_similarity within_inter_cluster
    """,
    "structure": """
        all_triads attribute_assortativity_coefficient attribute_mixing_dict average_clustering
        average_degree_connectivity average_neighbor_degree average_node_connectivity
        boundary_expansion chordal_graph_cliques chordless_cycles closeness_vitality clustering
        communicability complement conductance connected_dominating_set constraint core_number
        cut_size cycle_basis degree_assortativity_coefficient degree_histogram degree_mixing_dict
        degree_pearson_correlation_coefficient density dominance_frontiers dominating_set
        edge_boundary edge_connectivity edge_expansion effective_size enumerate_all_cliques
        equitable_color find_cliques flow_hierarchy generalized_degree girth gomory_hu_tree
        greedy_color gutman_index harmonic_diameter hyper_wiener_index immediate_dominators
        is_aperiodic is_arborescence is_bipartite is_branching is_chordal is_directed_acyclic_graph
        is_distance_regular is_eulerian is_forest is_isolate is_perfect_graph is_planar is_regular
        is_semieulerian is_tournament is_tree isolates k_components k_core k_corona k_crust k_shell
        k_truss kemeny_constant local_constraint max_weight_clique max_weight_matching
        maximal_independent_set maximal_matching maximum_branching maximum_flow maximum_flow_value
        maximum_spanning_arborescence maximum_spanning_edges maximum_spanning_tree min_edge_cover
        min_weight_matching minimum_branching minimum_cut minimum_cut_value minimum_cycle_basis
        minimum_edge_cut minimum_node_cut minimum_spanning_arborescence minimum_spanning_edges
        minimum_spanning_tree mixing_expansion moral_graph node_boundary node_clique_number
        node_connectivity node_expansion non_randomness normalized_cut_size number_of_cliques
        number_of_edges number_of_isolates number_of_nodes number_of_selfloops
        number_of_spanning_trees numeric_assortativity_coefficient onion_layers overall_reciprocity
        reciprocity rich_club_coefficient s_metric schultz_index spanner square_clustering
        stoer_wagner transitive_closure transitive_reduction transitivity triadic_census
        triads_by_type triangles volume weisfeiler_lehman_graph_hash
        weisfeiler_lehman_subgraph_hashes wiener_index approximation.average_clustering
        approximation.clique_removal approximation.densest_subgraph approximation.diameter
        approximation.large_clique_size approximation.max_clique
        approximation.maximum_independent_set approximation.min_weighted_vertex_cover
        approximation.steiner_tree approximation.treewidth_min_degree bipartite.color
        bipartite.density bipartite.hopcroft_karp_matching bipartite.maximum_matching
        bipartite.projected_graph bipartite.node_redundancy bipartite.sets
        bipartite.spectral_bipartivity bipartite.weighted_projected_graph
    """,
}


def _name(path: str) -> str:
    """The name in requests: without `community.`; other prefixes stay, since names are not unique
    across them."""
    return path.removeprefix("community.").replace(".", "_")


ALLOWED: Mapping[str, str] = {
    _name(path): path for text in _BY_CATEGORY.values() for path in sorted(text.split())
}
CATEGORY: Mapping[str, Category] = {
    _name(path): category for category, text in _BY_CATEGORY.items() for path in text.split()
}
